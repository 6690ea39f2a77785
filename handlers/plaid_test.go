package handlers

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

const plaidSecret = "plaid-t0psecret"

// enriches registers the type with a server.
func (b *bundle) enriches(url string, more map[string]string) {
	b.t.Helper()
	vars := map[string]string{
		"DAYBOOK_PLAID_URL": url, "DAYBOOK_PLAID_CLIENT_ID": "client-1", "DAYBOOK_PLAID_SECRET": plaidSecret,
		"DAYBOOK_PLAID_ACCESS_TOKEN_ADA": "access-sandbox-t0psecret", "DAYBOOK_SECRET_ORGS_ADA": org,
		"DAYBOOK_PLAID_ACCESS_TOKEN_OTHERS": "access-sandbox-t0psecret", "DAYBOOK_SECRET_ORGS_OTHERS": "acme",
	}
	maps.Copy(vars, more)
	b.variables(vars)
}

// plaidServer answers each endpoint with its body.
func plaidServer(t *testing.T, bodies map[string]string) *receiver {
	t.Helper()
	return receive(t, func(w http.ResponseWriter, q *http.Request) { _, _ = fmt.Fprint(w, bodies[q.URL.Path]) })
}

const authAnswer = `{"accounts": [{"account_id": "a1", "mask": "0000", "balances": {"available": 100.10, "current": 110}}],
	"numbers": {"ach": [{"account": "1111222233330000", "account_id": "a1", "routing": "011401533"}], "international": [{"iban": "GB29NWBK60161331926819", "bic": "NWBKGB21"}]}}`

func TestPlaidAsksForEachProduct(t *testing.T) {
	t.Parallel()
	s := plaidServer(t, map[string]string{
		"/auth/get": authAnswer, "/identity/get": `{"accounts": [{"owners": [{"names": ["Ada"]}]}]}`,
		"/identity_verification/get": `{"status": "success", "user": {"id_number": {"value": "123456789", "type": "us_ssn"}}}`,
	})
	b := setup(t)
	b.enriches(s.URL, nil)
	j := b.run(PlaidEnrichment{
		SubmissionID: "s-7", Products: []string{"identity", "auth", "verification"},
		AccessToken: "ada", IdentityVerificationID: "idv_1",
	})
	done := result[PlaidResult](t, j)
	assert.False(t, done.Shortened)
	assert.Contains(t, string(j.Result), `"Ada"`)
	assert.Contains(t, string(j.Result), `100.10`, "amounts stay as they came")
	assert.Contains(t, string(j.Result), `***0000`)
	stored := b.everything()
	for _, hidden := range []string{"1111222233330000", "011401533", "GB29NWBK60161331926819", "123456789", "t0psecret"} {
		assert.NotContains(t, stored, hidden)
	}
	require.Len(t, s.requests(), 3)
	got := s.requests()[0]
	assert.Equal(t, "POST /identity/get client-1 "+plaidSecret,
		got.method+" "+got.path+" "+got.header.Get("PLAID-CLIENT-ID")+" "+got.header.Get("PLAID-SECRET"))
	assert.JSONEq(t, `{"access_token": "access-sandbox-t0psecret"}`, string(got.body))
	assert.JSONEq(t, `{"identity_verification_id": "idv_1"}`, string(s.requests()[2].body))
}

func TestPlaidPagesOfTransactions(t *testing.T) {
	t.Parallel()
	page := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"amount": 1.50},`, n), ",") }
	n := 0
	s := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		_, _ = fmt.Fprintf(w, `{"total_transactions": 700, "accounts": [], "transactions": [%s]}`,
			page(map[int]int{1: 500, 2: 200}[n]))
	})
	b := setup(t)
	b.enriches(s.URL, map[string]string{"DAYBOOK_PLAID_MAX_RESULT": "1000"})
	done := result[PlaidResult](t,
		b.run(PlaidEnrichment{
			Products: []string{"transactions"}, AccessToken: "ada", StartDate: "2026-01-01",
			EndDate: "2026-02-01",
		}))
	assert.True(t, done.Shortened)
	assert.Equal(t, map[string]any{"transactions": 700.0, "accounts": 0.0}, done.Products["transactions"])
	require.Len(t, s.requests(), 2)
	assert.Contains(t, string(s.requests()[1].body), `"offset":500`)
}

// The token may come from a function of the database, and everything Plaid said go to another one,
// in the transaction that completes the job.
func TestPlaidFunctions(t *testing.T) {
	t.Parallel()
	s := plaidServer(t, map[string]string{"/auth/get": authAnswer})
	b := setup(t)
	b.exec(`CREATE SCHEMA app; CREATE TABLE app.bank (org_id text, submission_id text, said jsonb);
CREATE FUNCTION app.token(q jsonb) RETURNS text LANGUAGE sql AS $$ SELECT CASE WHEN q ->> 'reference' = 'item-7' THEN 'access-of-' || current_setting('daybook.org_id') END $$;
CREATE FUNCTION app.store(q jsonb) RETURNS void LANGUAGE sql AS $$
    INSERT INTO app.bank VALUES (current_setting('daybook.org_id'), q ->> 'submissionId', q -> 'products') $$;`)
	b.enriches(s.URL, map[string]string{
		"DAYBOOK_PLAID_TOKEN_FUNCTION":  "app.token",
		"DAYBOOK_PLAID_RESULT_FUNCTION": "app.store",
	})
	result[PlaidResult](t, b.run(PlaidEnrichment{
		SubmissionID: "s-7", Products: []string{"auth"},
		AccessTokenRef: "item-7",
	}))
	assert.JSONEq(t, `{"access_token": "access-of-`+org+`"}`, string(s.requests()[0].body))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM app.bank WHERE org_id = $1 AND submission_id = 's-7' AND said #>> '{auth,numbers,ach,0,account}' = '1111222233330000'`, org))

	j := b.run(PlaidEnrichment{Products: []string{"auth"}, AccessTokenRef: "item-8"})
	assert.Equal(t, models.CodeAuthenticationFailed, j.Code)
	assert.Contains(t, j.Error, "app.token returned no access token")
}

func TestPlaidFails(t *testing.T) {
	t.Parallel()
	said := func(kind, code string) string {
		return `{"error_type": "` + kind + `", "error_code": "` + code +
			`", "error_message": "about access-sandbox-t0psecret", "request_id": "r1"}`
	}
	for name, c := range map[string]struct {
		status int
		body   string
		code   models.ErrorCode
		state  models.JobState
		text   string
	}{
		"too many": {
			429, said("RATE_LIMIT_EXCEEDED", "ACCOUNTS_LIMIT"), models.CodeRateLimited,
			models.JobPending, "ACCOUNTS_LIMIT: about *** (request r1)",
		},
		"too many, as a 400": {
			400, said("RATE_LIMIT_EXCEEDED", "AUTH_LIMIT"), models.CodeRateLimited, models.JobPending,
			"AUTH_LIMIT",
		},
		"a bank is down": {
			400, said("INSTITUTION_ERROR", "INSTITUTION_DOWN"), models.CodeUpstream5xx, models.JobPending,
			"INSTITUTION_DOWN",
		},
		"not ready": {
			400, said("ITEM_ERROR", "PRODUCT_NOT_READY"), models.CodeUpstream5xx, models.JobPending,
			"PRODUCT_NOT_READY",
		},
		"out of order": {
			500, said("API_ERROR", "INTERNAL_SERVER_ERROR"), models.CodeUpstream5xx, models.JobPending,
			"INTERNAL_SERVER_ERROR",
		},
		"login": {
			400, said("ITEM_ERROR", "ITEM_LOGIN_REQUIRED"), models.CodeAuthenticationFailed, models.JobFailed,
			"ITEM_LOGIN_REQUIRED",
		},
		"keys": {
			400, said("INVALID_INPUT", "INVALID_API_KEYS"), models.CodeAuthenticationFailed, models.JobFailed,
			"INVALID_API_KEYS",
		},
		"no item": {
			400, said("ITEM_ERROR", "ITEM_NOT_FOUND"), models.CodeNotFound, models.JobFailed,
			"ITEM_NOT_FOUND",
		},
		"another": {
			400, said("INVALID_REQUEST", "MISSING_FIELDS"), models.CodeHandlerError, models.JobFailed,
			"MISSING_FIELDS",
		},
		"not an object": {200, `[]`, models.CodeHandlerError, models.JobFailed, "something else"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.enriches(receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			}).URL, nil)
			j := b.run(PlaidEnrichment{Products: []string{"balance"}, AccessToken: "ada"})
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Equal(t, c.state, j.State)
			assert.Contains(t, j.Error, c.text)
			assert.NotContains(t, b.everything(), "t0psecret")
			if c.code == models.CodeRateLimited {
				jittered(t, 2*time.Minute, j.Wait)
			}
		})
	}
}

// TestPlaidIsBounded: no answer, no server, and secrets that are missing or another organization's.
func TestPlaidIsBounded(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := receive(t, func(http.ResponseWriter, *http.Request) { <-hold })
	t.Cleanup(func() { close(hold) })
	for name, c := range map[string]struct {
		vars map[string]string
		p    PlaidEnrichment
		code models.ErrorCode
		text string
	}{
		"no answer": {
			map[string]string{"DAYBOOK_PLAID_TIMEOUT": "100ms"},
			PlaidEnrichment{AccessToken: "ada"},
			models.CodeTimeout, "did not answer within 100ms",
		},
		"no server": {
			map[string]string{"DAYBOOK_PLAID_URL": "http://127.0.0.1:1"},
			PlaidEnrichment{AccessToken: "ada"},
			models.CodeNetworkError, "connection refused",
		},
		"no secret": {
			map[string]string{"DAYBOOK_PLAID_SECRET": ""},
			PlaidEnrichment{AccessToken: "ada"},
			models.CodeAuthenticationFailed, "DAYBOOK_PLAID_SECRET",
		},
		"no token": {
			nil,
			PlaidEnrichment{AccessToken: "bob"},
			models.CodeAuthenticationFailed,
			"DAYBOOK_PLAID_ACCESS_TOKEN_BOB",
		},
		"another organization's": {
			nil,
			PlaidEnrichment{AccessToken: "others"},
			models.CodeAuthenticationFailed,
			"not bound to the organization " + org,
		},
		"another organization": {
			map[string]string{"DAYBOOK_PLAID_ORGS": "acme"},
			PlaidEnrichment{AccessToken: "ada"},
			models.CodeAuthenticationFailed, "DAYBOOK_PLAID_ORGS",
		},
		"no function": {
			nil,
			PlaidEnrichment{AccessTokenRef: "x"},
			models.CodeAuthenticationFailed,
			"DAYBOOK_PLAID_TOKEN_FUNCTION",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.enriches(slow.URL, c.vars)
			c.p.Products = []string{"balance"}
			j := b.run(c.p)
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Contains(t, j.Error, c.text)
		})
	}
}

func TestPlaidCheck(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]PlaidEnrichment{
		"access_token: a payload holds no credentials": {
			Products:   []string{"auth"},
			PlainToken: "access-sandbox-t0psecret",
		},
		"accessToken is a token":    {Products: []string{"auth"}, AccessToken: "access-sandbox-t0psecret"},
		"accessTokenRef is a token": {Products: []string{"auth"}, AccessTokenRef: "access-sandbox-t0psecret"},
		"products is empty":         {AccessToken: "ada"},
		"is no product":             {Products: []string{"loans"}, AccessToken: "ada"},
		"named twice":               {Products: []string{"auth", "auth"}, AccessToken: "ada"},
		"give one of accessToken":   {Products: []string{"auth"}},
		"startDate and endDate":     {Products: []string{"transactions"}, AccessToken: "ada"},
		"identityVerificationId":    {Products: []string{"verification"}},
	} {
		err := p.Check()
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "t0psecret")
	}
	_, err := NewPlaid(setup(t).Pool, PlaidConfig{ClientID: "c", TokenFunction: "f"})
	require.ErrorContains(t, err, "PLAID_TOKEN_FUNCTION")
}

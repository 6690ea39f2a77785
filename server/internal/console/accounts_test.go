package console_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// saved is the source that a page of a check would save.
func (s *site) checked(form url.Values) string {
	s.t.Helper()
	status, body := s.post("/console/accounts/check?org=acme", form)
	require.Equal(s.t, http.StatusOK, status, body)
	return body
}

func account(code, name, kind, role, section, currencies string) url.Values {
	return url.Values{
		"code": {code}, "name": {name}, "type": {kind}, "role": {role}, "section": {section}, "currencies": {currencies},
	}
}

func TestTheChartIsChanged(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	s.write(fixture.Invoice("acme", "inv-1", 1000))
	s.work()
	sees(t, s.see("/console/accounts?org=acme"), "Add an account", "Upload a chart", "receivable")
	sees(t, s.see("/console/accounts/edit?org=acme&account=1200"), "Change account 1200", `value="receivable" selected`)

	body := s.checked(account("6999", "Sundry, \"other\"", "expense", "none", "Other", "eur, usd"))
	sees(t, body, "new", "6999", "EUR USD", "Save")
	assert.NotContains(t, body, "move the balances")
	const sundry = "code,name,type,role,section,currencies\n6999,\"Sundry, \"\"other\"\"\",expense,none,Other,EUR USD\n"
	sees(t, s.done("/console/accounts/put", url.Values{"source": {sundry}}), "The chart is changed", "Other")
	sees(t, s.done("/console/accounts/put", url.Values{"source": {sundry}}), "Nothing was changed")
	sees(t, s.checked(url.Values{"source": {sundry}}), "1 account is so already")
	sees(t, s.checked(account("", "x", "asset", "none", "", "")), "They cannot be saved", "the code must have")
	sees(t, s.checked(account("1", "x", "asset", "none", "", "XXX")), "They cannot be saved")

	// The type of an account with entries: what moves is said before it is done.
	sees(t, s.checked(account("1200", "Receivables", "liability", "receivable", "", "")),
		"Accounts with entries would change their type", "from asset to liability: 11.90 EUR", "Save, and move the balances")
	const moved = "code,name,type\n1200,Receivables,liability\n"
	status, body := s.post("/console/accounts/put", url.Values{"org": {"acme"}, "source": {moved}})
	assert.Equal(t, http.StatusConflict, status)
	sees(t, body, "with a balance of 11.90 EUR")
	sees(t, s.done("/console/accounts/put", url.Values{"source": {moved}, "change_types": {"true"}}), "The chart is changed")
	sees(t, s.see("/console/accounts/edit?org=acme&account=1200"), `value="liability" selected`)
	status, _ = s.get("/console/accounts/edit?org=acme&account=none")
	assert.Equal(t, http.StatusNotFound, status)
}

func TestAChartIsUploaded(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "chart.csv")
	require.NoError(t, err)
	_, err = part.Write([]byte("code;name;type\r\n8000;Grants;income\r\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/console/accounts/check?org=acme", &form)
	require.NoError(t, err)
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	status, body := s.do(r)
	require.Equal(t, http.StatusOK, status, body)
	sees(t, body, "8000", "Grants", "8000;Grants;income")
}

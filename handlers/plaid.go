package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// PlaidEnrichment is the payload of the type plaid_enrichment: what Plaid knows of a person's bank
// accounts.
type PlaidEnrichment struct {
	FormID       string `json:"formId,omitempty"`
	SubmissionID string `json:"submissionId,omitempty"`
	// Products are what is asked for: accounts, balance, identity, auth, transactions, item and
	// verification.
	Products []string `json:"products"`
	// AccessToken names the secret that is the access token. AccessTokenRef is a reference instead,
	// for which PlaidConfig.TokenFunction returns the token. One of them is required, but for
	// verification alone.
	AccessToken    string `json:"accessToken,omitempty"`
	AccessTokenRef string `json:"accessTokenRef,omitempty"`
	// StartDate and EndDate, YYYY-MM-DD, are required for transactions.
	StartDate string `json:"startDate,omitempty"`
	EndDate   string `json:"endDate,omitempty"`
	// IdentityVerificationID is required for verification.
	IdentityVerificationID string `json:"identityVerificationId,omitempty"`
	// Metadata is handed to PlaidConfig.ResultFunction; whatever JSON it is.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// PlainToken is refused: a payload holds no credentials. The error says where the token belongs.
	PlainToken string `json:"access_token,omitempty"`
}

// JobType is "plaid_enrichment".
func (PlaidEnrichment) JobType() string { return "plaid_enrichment" }

// PlaidPolicy is the type's policy: 3 attempts, 5 and 10 minutes between them, each of up to 2
// minutes.
func PlaidPolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: 2 * time.Minute, Base: 5 * time.Minute, Factor: 2, Cap: 20 * time.Minute}
}

// PlaidConfig says how Plaid is asked, and where its answers go.
type PlaidConfig struct {
	// ClientID is the client's id; required. Secrets finds the client's secret.
	ClientID string `env:"PLAID_CLIENT_ID"`
	// URL is where the API is; default https://production.plaid.com.
	URL string `env:"PLAID_URL"`
	// TokenFunction is a function of the database, schema.name, that returns the access token for a
	// reference. Its argument, jsonb, has reference and submissionId; the organization is in the
	// setting daybook.org_id.
	TokenFunction string `env:"PLAID_TOKEN_FUNCTION"`
	// ResultFunction is a function of the database, schema.name, that is called with everything Plaid
	// said in the transaction that completes the job. The job's result has it masked and bounded.
	ResultFunction string `env:"PLAID_RESULT_FUNCTION"`
	// MaxResult is how many bytes of JSON a job's result may have; default 65536. Of a longer answer
	// only counts are kept.
	MaxResult int `env:"PLAID_MAX_RESULT"`
	// Timeout bounds a request with its answer; default 20 s.
	Timeout time.Duration `env:"PLAID_TIMEOUT"`
	// Organizations are those whose jobs may ask; empty: all.
	Organizations []string `env:"PLAID_ORGS"`
	// Secrets finds the client's secret, and the access tokens that payloads name.
	Secrets Secrets `env:"-"`
}

// PlaidHandler works jobs of the type plaid_enrichment. It is safe for concurrent use.
type PlaidHandler struct {
	pool   *pgxpool.Pool
	config PlaidConfig
	upstream
	// tokens and results are the two functions, as schema and name; empty: there is none.
	tokens, results []string
}

// maxPlaidAnswer is how many bytes of an answer are read.
const maxPlaidAnswer = 8 << 20

// NewPlaid returns a handler. The pool is for the functions of the database, and stays the caller's
// to close.
func NewPlaid(pool *pgxpool.Pool, c PlaidConfig) (*PlaidHandler, error) {
	c.URL = strings.TrimRight(cmp.Or(c.URL, "https://production.plaid.com"), "/")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.MaxResult = cmp.Or(c.MaxResult, 64<<10)
	h := &PlaidHandler{pool: pool, config: c, upstream: newUpstream(c.Timeout)}
	h.limit = maxPlaidAnswer
	switch {
	case pool == nil:
		return nil, errors.New("plaid_enrichment: a pool is required")
	case !isVisible(c.ClientID) || c.ClientID == "":
		return nil, errors.New("plaid_enrichment: PLAID_CLIENT_ID is required")
	case !isSafe(c.URL):
		return nil, errors.New("plaid_enrichment: PLAID_URL must be an address of https, or of this machine, without user and password")
	case c.Timeout < 0 || c.MaxResult < 0:
		return nil, errors.New("plaid_enrichment: PLAID_TIMEOUT and PLAID_MAX_RESULT must not be negative")
	}
	for name, f := range map[string]struct {
		function string
		parts    *[]string
	}{"PLAID_TOKEN_FUNCTION": {c.TokenFunction, &h.tokens}, "PLAID_RESULT_FUNCTION": {c.ResultFunction, &h.results}} {
		if f.function == "" {
			continue
		}
		parts := functionName.FindStringSubmatch(f.function)
		if parts == nil {
			return nil, fmt.Errorf("plaid_enrichment: %s is not like schema.name, in lower-case letters, digits and _", name)
		}
		*f.parts = parts[1:]
	}
	return h, nil
}

// Close gives idle connections back.
func (h *PlaidHandler) Close() error { return h.close() }

// Handle asks for each product. Asking changes nothing, so that a repeated attempt asks for all of
// them again. It fails with RATE_LIMITED, UPSTREAM_5XX (also when a bank does not answer, or a
// product is not ready yet), TIMEOUT or NETWORK_ERROR, which are tried again, and finally with
// AUTHENTICATION_FAILED (the client or the access token is refused or missing, or the person has to
// log in again), NOT_FOUND, PAYLOAD_INVALID or HANDLER_ERROR (every other refusal).
func (h *PlaidHandler) Handle(ctx context.Context, job *jobs.Job[PlaidEnrichment]) error {
	return outcome(h.enrich(ctx, callOf(job)))
}

// PlaidResult is the result of a job of the type plaid_enrichment.
type PlaidResult struct {
	// Products are Plaid's answers by product. Account numbers and the numbers of identity papers are
	// masked.
	Products map[string]any `json:"products"`
	// Shortened says that the answers were too long for a result, and that Products has counts
	// instead.
	Shortened bool `json:"shortened,omitempty"`
}

// endpoints are where products are asked for.
var endpoints = map[string]string{
	"accounts": "/accounts/get", "balance": "/accounts/balance/get", "identity": "/identity/get", "auth": "/auth/get",
	"transactions": "/transactions/get",
	"item":         "/item/get", "verification": "/identity_verification/get",
}

// verification is the product that needs no access token.
const verification = "verification"

// plaidDate is how a day is written.
var plaidDate = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p PlaidEnrichment) Check() error {
	const store = "store it as the secret DAYBOOK_PLAID_ACCESS_TOKEN_<NAME> (or the file <name>.plaid) and name that " +
		"by accessToken, or keep it in a table and give accessTokenRef"
	const products = "name accounts, balance, identity, auth, transactions, item or verification"
	needsToken := slices.ContainsFunc(p.Products, func(product string) bool { return product != verification })
	switch {
	case p.PlainToken != "":
		return invalid("access_token: a payload holds no credentials: %s", store)
	case strings.HasPrefix(p.AccessToken, "access-"):
		return invalid("accessToken is a token, and a payload holds no credentials: %s", store)
	case p.AccessToken != "" && !secretName.MatchString(p.AccessToken):
		return invalid("accessToken is not the name of a secret: lower-case letters, digits, - and _")
	case strings.HasPrefix(p.AccessTokenRef, "access-"):
		return invalid("accessTokenRef is a token, and a payload holds no credentials: %s", store)
	case len(p.Products) == 0:
		return invalid("products is empty: " + products)
	case needsToken && (p.AccessToken == "") == (p.AccessTokenRef == ""):
		return invalid("give one of accessToken and accessTokenRef")
	case slices.Contains(p.Products, "transactions") &&
		(!plaidDate.MatchString(p.StartDate) || !plaidDate.MatchString(p.EndDate)):
		return invalid("startDate and endDate are required for transactions, as YYYY-MM-DD")
	case slices.Contains(p.Products, verification) && p.IdentityVerificationID == "":
		return invalid("identityVerificationId is required for verification")
	}
	seen := map[string]bool{}
	for _, product := range p.Products {
		if endpoints[product] == "" || seen[product] {
			return invalid("products: one is no product, or is named twice: " + products)
		}
		seen[product] = true
	}
	return nil
}

// enrich asks for all products of a job.
func (h *PlaidHandler) enrich(ctx context.Context, c *call[PlaidEnrichment]) error {
	p := &c.payload
	if err := p.Check(); err != nil {
		return err
	}
	if !boundTo(h.config.Organizations, c.orgID) {
		return fail(models.CodeAuthenticationFailed,
			"Plaid's client is not bound to the organization %s: %sPLAID_ORGS names those that may ask", clip(c.orgID),
			environmentPrefix)
	}
	q := plaidQuery{payload: p}
	var err error
	if q.secret, err = h.config.Secrets.find(environmentPrefix+"PLAID_SECRET", "plaid.secret"); errors.Is(err,
		errNoSecret) {
		return fail(models.CodeAuthenticationFailed, "the secret for Plaid: %w", err)
	} else if err != nil {
		return err
	}
	if q.token, err = h.token(ctx, c); err != nil {
		return err
	}
	answers := map[string]any{}
	for _, product := range p.Products {
		if answers[product], err = h.ask(ctx, q, product); err != nil {
			return err
		}
	}
	if h.results != nil {
		argument, err := json.Marshal(map[string]any{
			"formId": p.FormID, "submissionId": p.SubmissionID, "accessToken": p.AccessToken,
			"accessTokenRef": p.AccessTokenRef, "metadata": p.Metadata, "products": answers,
		})
		if err != nil {
			return failFinally("the answers cannot be written as JSON")
		}
		c.inTx(func(ctx context.Context, tx pgx.Tx) error {
			if _, err := store.CallFunction(ctx, tx, h.results[0], h.results[1], c.orgID, c.id, argument); err != nil {
				return outcome(functionFailure(h.config.ResultFunction, err))
			}
			return nil
		})
	}
	c.result(h.bounded(answers))
	return nil
}

func init() {
	builtins = append(builtins, builtin{name: "plaid_enrichment", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[PlaidConfig](s)
		if err != nil {
			return err
		}
		if config.ClientID == "" {
			return notConfiguredError("set DAYBOOK_PLAID_CLIENT_ID and DAYBOOK_PLAID_SECRET")
		}
		config.Secrets = s.secrets
		h, err := NewPlaid(s.Pool, config)
		if err != nil {
			return err
		}
		s.onClose(h.Close)
		jobs.Register(r, s.policy(PlaidPolicy()), h.Handle)
		return nil
	}})
}

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// plaidQuery is what every request of an attempt has.
type plaidQuery struct {
	payload       *PlaidEnrichment
	secret, token string
}

// maxTransactions is how many transactions a job asks for, plaidPage how many come in one answer.
const (
	maxTransactions = 2000
	plaidPage       = 500
)

// token finds the access token: the secret of a name, or what the function returns for a reference.
func (h *PlaidHandler) token(ctx context.Context, c *call[PlaidEnrichment]) (string, error) {
	p := &c.payload
	switch {
	case p.AccessToken != "":
		return h.config.Secrets.named(c.orgID, "PLAID_ACCESS_TOKEN_", p.AccessToken, ".plaid")
	case p.AccessTokenRef == "":
		return "", nil
	case h.tokens == nil:
		return "", fail(models.CodeAuthenticationFailed,
			"accessTokenRef: %sPLAID_TOKEN_FUNCTION names no function that returns access tokens", environmentPrefix)
	}
	argument, err := json.Marshal(map[string]string{"reference": p.AccessTokenRef, "submissionId": p.SubmissionID})
	if err != nil {
		return "", invalid("accessTokenRef cannot be written as JSON")
	}
	var raw json.RawMessage
	err = store.Begin(ctx, h.pool, func(tx pgx.Tx) error {
		var err error
		raw, err = store.CallFunction(ctx, tx, h.tokens[0], h.tokens[1], c.orgID, c.id, argument)
		return err
	})
	if err != nil {
		return "", store.Unavailable(ctx, functionFailure(h.config.TokenFunction, err))
	}
	var token string
	if json.Unmarshal(raw, &token) != nil || !isVisible(token) || token == "" {
		return "", fail(models.CodeAuthenticationFailed, "%s returned no access token for the reference",
			h.config.TokenFunction)
	}
	return token, nil // there is one a person: too many for what is kept out of logs everywhere
}

// ask asks for a product.
func (h *PlaidHandler) ask(ctx context.Context, q plaidQuery, product string) (any, error) {
	body := map[string]any{}
	switch product {
	case verification:
		body["identity_verification_id"] = q.payload.IdentityVerificationID
	case "transactions":
		return h.transactions(ctx, q)
	}
	return h.post(ctx, q, product, body)
}

// transactions asks for the transactions of the payload's days, page by page.
func (h *PlaidHandler) transactions(ctx context.Context, q plaidQuery) (any, error) {
	var all map[string]any
	var list []any
	for {
		answer, err := h.post(ctx, q, "transactions", map[string]any{
			"start_date": q.payload.StartDate, "end_date": q.payload.EndDate,
			"options": map[string]any{"count": plaidPage, "offset": len(list)},
		})
		if err != nil {
			return nil, err
		}
		page, _ := answer["transactions"].([]any)
		list = append(list, page...)
		total, _ := answer["total_transactions"].(json.Number)
		n, _ := total.Int64()
		if all == nil {
			all = answer
		}
		if len(page) == 0 || int64(len(list)) >= n || len(list) >= maxTransactions {
			all["transactions"] = list
			return all, nil
		}
	}
}

// post sends one request.
func (h *PlaidHandler) post(ctx context.Context, q plaidQuery, product string,
	body map[string]any,
) (map[string]any, error) {
	if product != verification {
		body["access_token"] = q.token
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, invalid("the request cannot be written as JSON")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.URL+endpoints[product], bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Plaid-Version", "2020-09-14")
	r.Header.Set("Plaid-Client-Id", h.config.ClientID)
	r.Header.Set("Plaid-Secret", q.secret)
	ctx, asking := span.Start(ctx,
		span.Span{
			Name: "ask plaid", Kind: span.Client,
			Attrs: []span.Attr{{Key: "server.address", Value: r.URL.Hostname()}},
		})
	answer, err := h.upstream.ask(r.WithContext(ctx))
	if err != nil {
		asking.End(err)
		return nil, err
	}
	asking.Set(span.Attr{Key: "http.response.status_code", Value: answer.status})
	if !answer.ok() {
		asking.End(refusedError("Plaid refused the request"))
		return nil, refusedPlaid(r, answer, q)
	}
	asking.End(nil)
	var said map[string]any
	decoder := json.NewDecoder(bytes.NewReader(answer.body))
	decoder.UseNumber() // amounts stay as they came
	if decoder.Decode(&said) != nil {
		return nil, failFinally("%s answered %s with something else than an object of up to %d bytes", origin(r.URL),
			product, maxPlaidAnswer)
	}
	return said, nil
}

// plaidCodes are the error codes of Plaid of which the HTTP status does not say enough.
var plaidCodes = map[string]models.ErrorCode{
	"INVALID_ACCESS_TOKEN": models.CodeAuthenticationFailed, "INVALID_API_KEYS": models.CodeAuthenticationFailed,
	"UNAUTHORIZED_ENVIRONMENT": models.CodeAuthenticationFailed,
	"ITEM_LOGIN_REQUIRED":      models.CodeAuthenticationFailed, "ITEM_LOCKED": models.CodeAuthenticationFailed,
	"INVALID_CREDENTIALS":     models.CodeAuthenticationFailed,
	"USER_PERMISSION_REVOKED": models.CodeAuthenticationFailed, "ACCESS_NOT_GRANTED": models.CodeAuthenticationFailed,
	"ITEM_NOT_FOUND": models.CodeNotFound,
	"NOT_FOUND":      models.CodeNotFound, "PRODUCT_NOT_READY": models.CodeUpstream5xx,
}

// plaidTypes are the same for types of errors.
var plaidTypes = map[string]models.ErrorCode{
	"RATE_LIMIT_EXCEEDED": models.CodeRateLimited, "RATE_LIMIT_ERROR": models.CodeRateLimited,
	"API_ERROR": models.CodeUpstream5xx, "INSTITUTION_ERROR": models.CodeUpstream5xx,
}

// refusedPlaid says what an answer leads to that is no success.
func refusedPlaid(r *http.Request, answer reply, q plaidQuery) *failure {
	var said struct {
		Type    string `json:"error_type"`
		Code    string `json:"error_code"`
		Message string `json:"error_message"`
		Request string `json:"request_id"`
	}
	text := ""
	if json.Unmarshal(answer.body, &said) == nil && said.Code != "" {
		text = said.Code + ": " + said.Message + " (request " + said.Request + ")"
		for _, secret := range []string{q.secret, q.token} {
			if secret != "" {
				text = strings.ReplaceAll(text, secret, "***")
			}
		}
	}
	f := judge(r, answer, text)
	code, known := plaidCodes[said.Code]
	if !known {
		code, known = plaidTypes[said.Type]
	}
	if known {
		f.code, f.final = code, false
	}
	return f
}

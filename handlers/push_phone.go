package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/daybook-dev/daybook/models"
)

// serviceAccount is what a secret for phones has, as the console of Google Cloud gives it.
type serviceAccount struct {
	ProjectID    string `json:"project_id"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	TokenURI     string `json:"token_uri"`
}

// fcmScope is what a token may do: send messages.
const fcmScope = "https://www.googleapis.com/auth/firebase.messaging"

// accounts hold the tokens of service accounts for as long as they are valid.
type accounts struct {
	client  *http.Client
	timeout time.Duration
	mu      sync.Mutex
	sources map[[32]byte]oauth2.TokenSource
}

// maxAccounts is how many are remembered.
const maxAccounts = 100

// token returns a token of an account, which is asked for when there is no valid one.
func (a *accounts) token(secret string) (serviceAccount, string, error) {
	var account serviceAccount
	if json.Unmarshal([]byte(secret), &account) != nil || account.ProjectID == "" || account.ClientEmail == "" ||
		account.PrivateKey == "" || !isSafe(account.TokenURI) {
		return account, "", fail(models.CodeAuthenticationFailed,
			"the secret is no service account: it must be the JSON that the console of Google Cloud gives for its key")
	}
	id := sha256.Sum256([]byte(secret))
	a.mu.Lock()
	if a.sources == nil || len(a.sources) >= maxAccounts {
		a.sources = map[[32]byte]oauth2.TokenSource{}
	}
	source := a.sources[id]
	if source == nil {
		config := &jwt.Config{
			Email: account.ClientEmail, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.PrivateKeyID,
			Scopes: []string{fcmScope}, TokenURL: account.TokenURI,
		}
		client := &http.Client{Transport: a.client.Transport, CheckRedirect: a.client.CheckRedirect, Timeout: a.timeout}
		// The token is used beyond the attempt that asks for it.
		source = config.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, client))
		a.sources[id] = source
	}
	a.mu.Unlock()
	token, err := source.Token()
	if err != nil {
		return account, "", tokenFailure(account.TokenURI, err)
	}
	return account, token.AccessToken, nil
}

// tokenFailure says what it leads to that there is no token. Nothing was sent.
func tokenFailure(address string, err error) *failure {
	to := "the token's server"
	if u, parsed := url.Parse(address); parsed == nil {
		to = origin(u)
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil {
		status := refused.Response.StatusCode
		said := fmt.Sprintf("%s answered %d when it was asked for a token", to, status)
		if f := statusFailure(said, status, refused.Response.Header, longestWait); !f.final &&
			!models.JobErrorIsFinal(f.code) {
			return f
		}
		return fail(models.CodeAuthenticationFailed, "%s refused a token for the service account: %s", to,
			clip(refused.ErrorCode+" "+refused.ErrorDescription))
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if isTimeout(wrapped.Err) {
			return fail(models.CodeTimeout, "%s did not answer in time when it was asked for a token", to)
		}
		return fail(models.CodeNetworkError, "%s: %s", to, networkReason(wrapped.Err))
	}
	return fail(models.CodeAuthenticationFailed, "the service account's key cannot be used")
}

// toPhone sends a message to a phone, and returns the name that the service gives it.
func (h *pusher) toPhone(ctx context.Context, org string, p *NotificationPush) (string, error) {
	secret, err := fcmSecret.of(h.config.Secrets, org, p.Secret)
	if err != nil {
		return "", err
	}
	account, token, err := h.accounts.token(secret)
	if err != nil {
		return "", err
	}
	message := map[string]any{"token": p.Token, "notification": map[string]string{"title": p.Title, "body": p.Body}}
	if len(p.Data) > 0 {
		message["data"] = p.Data
	}
	if p.TTL > 0 {
		message["android"] = map[string]string{"ttl": strconv.Itoa(p.TTL) + "s"}
	}
	body, err := json.Marshal(map[string]any{"message": message})
	if err != nil {
		return "", invalid("the message cannot be written as JSON")
	}
	to := h.config.FCMURL + "/v1/projects/" + url.PathEscape(account.ProjectID) + "/messages:send"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return "", invalid("the message cannot be asked for")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := push(r, h.phones)
	if err != nil {
		return "", err
	}
	var said struct {
		Name  string
		Error struct{ Message, Status string }
	}
	_ = json.Unmarshal(answer.body, &said)
	if answer.ok() {
		return said.Name, nil
	}
	text := ""
	if said.Error.Message != "" {
		text = strings.NewReplacer(token, "***", p.Token, "***").Replace(said.Error.Message) + " (" + said.Error.Status +
			")"
	}
	return "", judge(r, answer, text)
}

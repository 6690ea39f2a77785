// Package tokens makes, lists and revokes the tokens of the HTTP API and the web console. The
// command `daybook tokens` calls this package.
//
// The database's role needs the rights of daybook_operator to make and revoke tokens, and of
// daybook_reader to list them.
package tokens

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	stored "github.com/daybook-dev/daybook/internal/store/tokens"
)

// Errors of this package; compare with errors.Is.
var (
	// ErrInvalid: the token has no scope or an unknown one, a limit is out of range, or a text is not
	// UTF-8 or has the character NUL.
	ErrInvalid = store.ErrInvalid
	// ErrNotFound: there is no token with that id.
	ErrNotFound = store.ErrTokenNotFound
	// ErrNoQuerier: a function was given nothing to run on.
	ErrNoQuerier = failure.New(failure.Misuse, "the handle is nil: pass a pool, a connection or your transaction")
)

// Scope is something that a token allows. None contains another.
type Scope string

const (
	// Read allows looking at jobs, documents and the ledger.
	Read Scope = "read"
	// Enqueue allows asking for work.
	Enqueue Scope = "enqueue"
	// Operate allows retrying, cancelling and running jobs, and what the console changes.
	Operate Scope = "operate"
	// Decrypt allows seeing in plain what jobs keep encrypted; each look is in the log of actions.
	Decrypt Scope = "decrypt"
)

// MaxPerMinute is the largest limit of a token.
const MaxPerMinute = stored.MaxPerMinute

// Querier is what a request runs on: a *pgxpool.Pool, *pgx.Conn or pgx.Tx. In a transaction a token
// is made, or revoked, by its commit.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Limits are what a token may do within its scopes. The zero value of each field is its default.
type Limits struct {
	// Types are the types of background jobs that it may enqueue; empty: all, but cleanup and
	// db_function only with Operate.
	Types []string `json:"types,omitempty"`
	// RequestsPerMinute and JobsPerMinute are how many requests a server takes from it, and how many
	// jobs it enqueues for it, in a minute; 0: no limit.
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	JobsPerMinute     int `json:"jobs_per_minute,omitempty"`
	// RunByGet has GET /api/jobs/run work due jobs, as POST does: for cron services that send nothing
	// else. It wants Operate.
	RunByGet bool `json:"run_by_get,omitempty"`
}

// New is what a token is to be.
type New struct {
	// OrgID is the only organization that it reaches; empty: it reaches all.
	OrgID string
	// Name says what it is for.
	Name   string
	Scopes []Scope
	Limits
}

// Token is a token without what it takes to use it.
type Token struct {
	ID string `json:"id"`
	// OrgID is the only organization that the token reaches; nil: it reaches all.
	OrgID  *string `json:"org_id"`
	Name   string  `json:"name"`
	Scopes []Scope `json:"scopes"`

	CreatedAt time.Time `json:"created_at"`
	// LastUsedAt is exact to a minute; nil: never used.
	LastUsedAt *time.Time `json:"last_used_at,omitempty"`
	// RevokedAt is since when it is refused; nil: it is not.
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	Limits
}

// Create makes a token and returns it with its secret. That is the only time that the secret is
// known: the database keeps a hash of it.
//
// Errors: ErrInvalid, ErrNoQuerier.
func Create(ctx context.Context, q Querier, n New) (t Token, secret string, err error) {
	if store.IsNil(q) {
		return Token{}, "", ErrNoQuerier
	}
	made, secret, err := stored.Create(ctx, q,
		stored.NewToken{
			OrgID: n.OrgID, Name: n.Name, Scopes: convert[stored.Scope](n.Scopes),
			Limits: stored.Limits(n.Limits),
		})
	if err != nil {
		return Token{}, "", err
	}
	return token(&made), secret, nil
}

// List lists tokens, the newest first, revoked ones included: those of one organization or, with
// the empty id, all.
//
// Errors: ErrNoQuerier.
func List(ctx context.Context, q Querier, org string) ([]Token, error) {
	if store.IsNil(q) {
		return nil, ErrNoQuerier
	}
	list, err := stored.List(ctx, q, org)
	all := make([]Token, len(list))
	for i := range list {
		all[i] = token(&list[i])
	}
	return all, err
}

// Revoke has a token refused from now on, and its holder signed out of the console. Of a token that
// is revoked already it changes nothing, and changed is false.
//
// Errors: ErrNotFound, ErrNoQuerier.
func Revoke(ctx context.Context, q Querier, id string) (t Token, changed bool, err error) {
	if store.IsNil(q) {
		return Token{}, false, ErrNoQuerier
	}
	revoked, changed, err := stored.Revoke(ctx, q, id)
	if err != nil {
		return Token{}, false, err
	}
	return token(&revoked), changed, nil
}

func token(t *stored.Token) Token {
	return Token{
		ID: t.ID, OrgID: t.OrgID, Name: t.Name, Scopes: convert[Scope](t.Scopes), CreatedAt: t.CreatedAt,
		LastUsedAt: t.LastUsedAt,
		RevokedAt:  t.RevokedAt, Limits: Limits(t.Limits),
	}
}

func convert[To, From ~string](from []From) []To {
	to := make([]To, len(from))
	for i, s := range from {
		to[i] = To(s)
	}
	return to
}

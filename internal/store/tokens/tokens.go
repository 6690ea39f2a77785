package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// Errors of tokens.
var (
	// ErrRefused: the token is unknown or revoked. The caller is not told which.
	ErrRefused = failure.New(failure.Unauthorized,
		"the token is unknown or revoked: create one with `daybook tokens create`")
	// ErrType: the token may not enqueue jobs of that type, and not give one another payload either.
	ErrType = failure.New(failure.TypeNotAllowed, "the token may not enqueue this type")
	// ErrNotFound: there is no token with that id; `daybook tokens list` shows those there are.
	ErrNotFound = store.ErrTokenNotFound
)

// Scope is something that a token of the HTTP API allows. None contains another.
type Scope string

const (
	// ScopeRead allows looking at jobs, documents and the ledger.
	ScopeRead Scope = "read"
	// ScopeEnqueue allows asking for work.
	ScopeEnqueue Scope = "enqueue"
	// ScopeOperate allows retrying, cancelling and running jobs.
	ScopeOperate Scope = "operate"
	// ScopeDecrypt allows seeing in plain what jobs keep encrypted.
	ScopeDecrypt Scope = "decrypt"
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeEnqueue, ScopeOperate, ScopeDecrypt} }

// Prefix begins every token, so that people and scanners for leaked secrets know one when they see
// it.
const Prefix = "dbk_"

const (
	tokenBytes = 32
	// tokenUsedEvery is how often a token's last use is written at most.
	tokenUsedEvery = time.Minute
)

// Token is one row of daybook.api_tokens, without what it takes to use it.
type Token struct {
	ID string `json:"id"`
	// OrgID is the only organization that the token reaches; nil: it reaches all.
	OrgID  *string `json:"org_id"`
	Name   string  `json:"name"`
	Scopes []Scope `json:"scopes"`

	CreatedAt time.Time `json:"created_at"`
	// LastUsedAt is exact to a minute; nil: never used.
	LastUsedAt *time.Time `json:"last_used_at,omitempty"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
	Limits
}

// Limits are what a token may do within its scopes. The zero value of each field is its default.
type Limits struct {
	// Types are the types of background jobs that it may enqueue; empty: all, but those of
	// OperateTypes only with ScopeOperate.
	Types []string `json:"types,omitempty"`
	// RequestsPerMinute and JobsPerMinute are how many requests a server takes from it, and how many
	// jobs it enqueues for it, in a minute; 0: no limit.
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	JobsPerMinute     int `json:"jobs_per_minute,omitempty"`
	// RunByGet has GET /api/jobs/run work due jobs, as POST does: for cron services that send nothing
	// else. It wants ScopeOperate.
	RunByGet bool `json:"run_by_get,omitempty"`
}

// MaxPerMinute is the largest limit of a token.
const MaxPerMinute = 1_000_000

// OperateTypes are the types that a token without types of its own may only enqueue with
// ScopeOperate: they remove what is kept, and call functions of the database.
func OperateTypes() []string { return []string{"cleanup", "db_function"} }

// Allows reports whether the token has a scope.
func (t *Token) Allows(s Scope) bool { return slices.Contains(t.Scopes, s) }

// CheckType refuses (ErrType) a type whose jobs the token may not enqueue. A type that has several
// names is allowed, or refused, under each of them: nameOf returns the one by which it is registered;
// nil: types have one name.
func (t *Token) CheckType(jobType string, nameOf func(jobType string) string) error {
	names := []string{jobType}
	if nameOf != nil {
		names = append(names, nameOf(jobType))
	}
	switch {
	case t.allowsType(names):
		return nil
	case len(t.Types) > 0:
		return fmt.Errorf("%w: jobs of the type %s, only %s: create a token with `daybook tokens create --types`", ErrType,
			jobType, strings.Join(t.Types, ", "))
	}
	return fmt.Errorf("%w: jobs of the type %s want a token with the scope operate, or one whose --types name it",
		ErrType, jobType)
}

func (t *Token) allowsType(names []string) bool {
	among := func(types []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(types, name) })
	}
	if len(t.Types) > 0 {
		return among(t.Types)
	}
	return t.Allows(ScopeOperate) || !among(OperateTypes())
}

// NewToken is what a token is to be.
type NewToken struct {
	// OrgID is the only organization that it reaches; empty: it reaches all.
	OrgID  string
	Name   string
	Scopes []Scope
	Limits
}

// check refuses what makes no token.
func (n *NewToken) check() error {
	if len(n.Scopes) == 0 {
		return store.Invalid("a token wants at least one scope")
	}
	for _, s := range n.Scopes {
		if !slices.Contains(Scopes(), s) {
			return store.Invalid("unknown scope %q: want some of %s", s, phrase.And(Scopes()))
		}
	}
	switch {
	case len(n.Types) > 100:
		return store.Invalid("a token may name 100 types, not %d", len(n.Types))
	case slices.ContainsFunc(n.Types, func(t string) bool { return !models.ValidJobType(t) }):
		return store.Invalid("each type must be a letter and then letters, digits, '_', '.', ':' or '-', 64 bytes at " +
			"most: name the types as they are enqueued")
	case n.RequestsPerMinute < 0 || n.JobsPerMinute < 0 || n.RequestsPerMinute > MaxPerMinute ||
		n.JobsPerMinute > MaxPerMinute:
		return store.Invalid("limits a minute must be from 1 to %d, or left out for none", MaxPerMinute)
	case n.RunByGet && !slices.Contains(n.Scopes, ScopeOperate):
		return store.Invalid("running jobs by GET wants the scope operate")
	}
	return nil
}

// Create makes a token. The secret is returned once: the database keeps its hash alone.
func Create(ctx context.Context, q store.Querier, n NewToken) (t Token, secret string, err error) {
	const stmt = `
INSERT INTO daybook.api_tokens (id, org_id, name, scopes, hash, types, requests_per_minute, jobs_per_minute, run_by_get)
VALUES (daybook.new_id(), NULLIF(@org, ''), @name, @scopes, @hash, @types, NULLIF(@requests, 0), NULLIF(@jobs, 0), @run_by_get)
RETURNING id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get`
	if err := n.check(); err != nil {
		return t, "", err
	}
	var types []string // empty is null
	if len(n.Types) > 0 {
		types = n.Types
	}
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never fails
	secret = Prefix + base64.RawURLEncoding.EncodeToString(random)
	t, err = oneToken(ctx, q, "create the token", stmt, store.Args{
		"org": n.OrgID, "name": n.Name, "scopes": store.Texts(n.Scopes), "hash": hashToken(secret), "types": types,
		"requests": n.RequestsPerMinute, "jobs": n.JobsPerMinute, "run_by_get": n.RunByGet,
	})
	if err != nil {
		return t, "", err
	}
	return t, secret, nil
}

// Find returns the token whose secret is given, or ErrRefused, and notes that it was used.
func Find(ctx context.Context, db store.DB, secret string) (Token, error) {
	// The row is found by the secret's hash, so the time that it takes tells nothing about other
	// secrets.
	const find = `
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get,
       hash, last_used_at > clock_timestamp() - make_interval(secs => $2)
  FROM daybook.api_tokens
 WHERE hash = $1`
	var t Token
	random, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(secret, Prefix))
	if err != nil || len(random) != tokenBytes || !strings.HasPrefix(secret, Prefix) {
		return t, ErrRefused
	}
	hash := hashToken(secret)
	var stored []byte
	var fresh *bool
	t, err = scanToken(db.QueryRow(ctx, find, hash, tokenUsedEvery.Seconds()), &stored, &fresh)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Token{}, ErrRefused
	case err != nil:
		return Token{}, store.Wrap("look for the token", err)
	case subtle.ConstantTimeCompare(stored, hash) != 1 || t.RevokedAt != nil:
		return Token{}, ErrRefused
	}
	if fresh == nil || !*fresh {
		noteUse(ctx, db, t.ID)
	}
	return t, nil
}

// noteUse writes that a token was used, once in tokenUsedEvery at most. A database that can only be
// read, or a role that may not write here, is no reason to refuse the token.
func noteUse(ctx context.Context, db store.DB, id string) {
	const used = `
UPDATE daybook.api_tokens
   SET last_used_at = clock_timestamp()
 WHERE id = $1 AND (last_used_at > clock_timestamp() - make_interval(secs => $2)) IS NOT TRUE`
	_, _ = db.Exec(ctx, used, id, tokenUsedEvery.Seconds())
}

// List lists tokens, the newest first: those of one organization or, with the empty id, all.
func List(ctx context.Context, q store.Querier, org string) ([]Token, error) {
	const stmt = `
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get
  FROM daybook.api_tokens
 WHERE $1 = '' OR org_id = $1
 ORDER BY created_at DESC, id`
	tokens, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (Token, error) { return scanToken(row) }, stmt, org)
	return tokens, store.Wrap("list tokens", err)
}

// Revoke has a token refused from now on, or returns ErrNotFound. Of a token that is revoked
// already it changes nothing, and changed is false.
func Revoke(ctx context.Context, q store.Querier, id string) (t Token, changed bool, err error) {
	const stmt = `
UPDATE daybook.api_tokens t
   SET revoked_at = coalesce(b.revoked_at, clock_timestamp())
  FROM (SELECT b.id, b.revoked_at FROM daybook.api_tokens b WHERE b.id = @id FOR NO KEY UPDATE) b
 WHERE t.id = b.id
RETURNING t.id, t.org_id, t.name, t.scopes, t.created_at, t.last_used_at, t.revoked_at, t.types, coalesce(t.requests_per_minute, 0),
          coalesce(t.jobs_per_minute, 0), t.run_by_get, b.revoked_at IS NULL`
	t, err = scanToken(q.QueryRow(ctx, stmt, store.Args{"id": id}), &changed)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, false, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	return t, changed, store.Wrap("revoke the token", err)
}

func oneToken(ctx context.Context, q store.Querier, doing, stmt string, a store.Args) (Token, error) {
	t, err := scanToken(q.QueryRow(ctx, stmt, a))
	return t, store.Wrap(doing, err)
}

// scanToken reads a token, and what the row has besides into more.
func scanToken(row pgx.Row, more ...any) (Token, error) {
	var t Token
	err := row.Scan(append([]any{
		&t.ID, &t.OrgID, &t.Name, &t.Scopes, &t.CreatedAt, &t.LastUsedAt, &t.RevokedAt, &t.Types, &t.RequestsPerMinute,
		&t.JobsPerMinute, &t.RunByGet,
	}, more...)...)
	return t, err
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

package store

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
)

// Errors of tokens.
var (
	// ErrTokenRefused: the token is unknown or revoked. Which of the two is nobody's business who does not hold it.
	ErrTokenRefused = errors.New("the token is unknown or revoked: create one with `daybook tokens create`")
	// ErrTokenNotFound: there is no token with that id; `daybook tokens list` shows those there are.
	ErrTokenNotFound = errors.New("no such token")
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
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeEnqueue, ScopeOperate} }

// TokenPrefix begins every token, so that people and scanners for leaked secrets know one when they see it.
const TokenPrefix = "dbk_"

const (
	tokenBytes = 32
	// tokenUsedEvery is how exact a token's last use is: so often at most it is written.
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
}

// Allows reports whether the token has a scope.
func (t *Token) Allows(s Scope) bool { return slices.Contains(t.Scopes, s) }

// CreateToken makes a token for one organization or, with the empty id, for all. The secret is returned once: the database
// keeps its hash alone.
func CreateToken(ctx context.Context, q Querier, org, name string, scopes []Scope) (t Token, secret string, err error) {
	const stmt = `
INSERT INTO daybook.api_tokens (id, org_id, name, scopes, hash)
VALUES (daybook.new_id(), NULLIF($1, ''), $2, $3, $4)
RETURNING id, org_id, name, scopes, created_at, last_used_at, revoked_at`
	if len(scopes) == 0 {
		return t, "", fmt.Errorf("%w: a token wants at least one scope", ErrInvalid)
	}
	for _, s := range scopes {
		if !slices.Contains(Scopes(), s) {
			return t, "", fmt.Errorf("%w: unknown scope %q: want some of %v", ErrInvalid, s, Scopes())
		}
	}
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never fails
	secret = TokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	t, err = oneToken(ctx, q, "create the token", stmt, org, name, scopeNames(scopes), hashToken(secret))
	if err != nil {
		return t, "", err
	}
	return t, secret, nil
}

// FindToken returns the token whose secret is given, or ErrTokenRefused, and notes that it was used.
func FindToken(ctx context.Context, db DB, secret string) (Token, error) {
	// The row is found by its hash: how long that takes says nothing of a secret that hashes to something near.
	const find = `
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at, hash, last_used_at > clock_timestamp() - make_interval(secs => $2)
  FROM daybook.api_tokens
 WHERE hash = $1`
	const used = `
UPDATE daybook.api_tokens
   SET last_used_at = clock_timestamp()
 WHERE id = $1 AND (last_used_at > clock_timestamp() - make_interval(secs => $2)) IS NOT TRUE`
	var t Token
	random, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(secret, TokenPrefix))
	if err != nil || len(random) != tokenBytes || !strings.HasPrefix(secret, TokenPrefix) {
		return t, ErrTokenRefused
	}
	hash := hashToken(secret)
	var scopes []string
	var stored []byte
	var fresh *bool
	err = db.QueryRow(ctx, find, hash, tokenUsedEvery.Seconds()).Scan(&t.ID, &t.OrgID, &t.Name, &scopes, &t.CreatedAt, &t.LastUsedAt, &t.RevokedAt, &stored, &fresh)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Token{}, ErrTokenRefused
	case err != nil:
		return Token{}, wrap("look for the token", err)
	case subtle.ConstantTimeCompare(stored, hash) != 1 || t.RevokedAt != nil:
		return Token{}, ErrTokenRefused
	}
	t.Scopes = scopesOf(scopes)
	if fresh == nil || !*fresh {
		// A database that can only be read, or a role that may not write here, is no reason to refuse.
		_, _ = db.Exec(ctx, used, t.ID, tokenUsedEvery.Seconds())
	}
	return t, nil
}

// ListTokens lists tokens, the newest first: those of one organization or, with the empty id, all.
func ListTokens(ctx context.Context, q Querier, org string) ([]Token, error) {
	const stmt = `
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at
  FROM daybook.api_tokens
 WHERE $1 = '' OR org_id = $1
 ORDER BY created_at DESC, id`
	rows, err := q.Query(ctx, stmt, org)
	if err != nil {
		return nil, wrap("list tokens", err)
	}
	tokens, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Token, error) { return scanToken(row) })
	if tokens == nil {
		tokens = []Token{}
	}
	return tokens, wrap("list tokens", err)
}

// RevokeToken has a token refused from now on, or returns ErrTokenNotFound. Revoking it twice is revoking it once.
func RevokeToken(ctx context.Context, q Querier, id string) (Token, error) {
	const stmt = `
UPDATE daybook.api_tokens
   SET revoked_at = coalesce(revoked_at, clock_timestamp())
 WHERE id = $1
RETURNING id, org_id, name, scopes, created_at, last_used_at, revoked_at`
	t, err := oneToken(ctx, q, "revoke the token", stmt, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, fmt.Errorf("%w: %s", ErrTokenNotFound, id)
	}
	return t, err
}

func oneToken(ctx context.Context, q Querier, doing, stmt string, args ...any) (Token, error) {
	t, err := scanToken(q.QueryRow(ctx, stmt, args...))
	return t, wrap(doing, err)
}

func scanToken(row pgx.Row) (Token, error) {
	var t Token
	var scopes []string
	err := row.Scan(&t.ID, &t.OrgID, &t.Name, &scopes, &t.CreatedAt, &t.LastUsedAt, &t.RevokedAt)
	t.Scopes = scopesOf(scopes)
	return t, err
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func scopeNames(scopes []Scope) []string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return names
}

func scopesOf(names []string) []Scope {
	scopes := make([]Scope, len(names))
	for i, n := range names {
		scopes[i] = Scope(n)
	}
	return scopes
}

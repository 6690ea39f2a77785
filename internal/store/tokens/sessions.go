package tokens

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// SessionLength is how long a session of the web console lasts.
const SessionLength = 12 * time.Hour

// BeginSession signs the holder of a token in and returns the secret that the browser keeps: a
// random one, known to the database by its hash, from which the token cannot be learned. Sessions
// that are over are removed on the way.
func BeginSession(ctx context.Context, db store.DB, tokenID string) (secret string, err error) {
	const over = `DELETE FROM daybook.console_sessions WHERE expires_at < clock_timestamp()`
	const begin = `
INSERT INTO daybook.console_sessions (hash, token_id, expires_at)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))`
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never fails
	secret = base64.RawURLEncoding.EncodeToString(random)
	if _, err := db.Exec(ctx, over); err != nil {
		return "", store.Wrap("remove sessions that are over", err)
	}
	if _, err := db.Exec(ctx, begin, hashToken(secret), tokenID, SessionLength.Seconds()); err != nil {
		return "", store.Wrap("begin a session", err)
	}
	return secret, nil
}

// OfSession returns the token of a session, or ErrRefused when the session is over or unknown, or
// its token is revoked. It notes that the token was used.
func OfSession(ctx context.Context, db store.DB, secret string) (Token, error) {
	const find = `
SELECT t.id, t.org_id, t.name, t.scopes, t.created_at, t.last_used_at, t.revoked_at, t.types, coalesce(t.requests_per_minute, 0), coalesce(t.jobs_per_minute, 0), t.run_by_get,
       t.last_used_at > clock_timestamp() - make_interval(secs => $2)
  FROM daybook.console_sessions s
  JOIN daybook.api_tokens t ON t.id = s.token_id
 WHERE s.hash = $1 AND s.expires_at > clock_timestamp()`
	if random, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(random) != tokenBytes {
		return Token{}, ErrRefused
	}
	var fresh *bool
	t, err := scanToken(db.QueryRow(ctx, find, hashToken(secret), tokenUsedEvery.Seconds()), &fresh)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && t.RevokedAt != nil:
		return Token{}, ErrRefused
	case err != nil:
		return Token{}, store.Wrap("look for the session", err)
	}
	if fresh == nil || !*fresh {
		noteUse(ctx, db, t.ID)
	}
	return t, nil
}

// EndSession signs out. A session that is over already is none to end.
func EndSession(ctx context.Context, db store.DB, secret string) error {
	_, err := db.Exec(ctx, `DELETE FROM daybook.console_sessions WHERE hash = $1`, hashToken(secret))
	return store.Wrap("end the session", err)
}

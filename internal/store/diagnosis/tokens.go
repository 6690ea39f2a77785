package diagnosis

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// HasToken says whether a token of the HTTP API is valid.
func HasToken(ctx context.Context, q store.Querier) (has bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM daybook.api_tokens t WHERE t.revoked_at IS NULL)`).Scan(&has)
	return has, store.Wrap("look for tokens", err)
}

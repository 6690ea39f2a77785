package actions

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Filter says which actions are listed; the zero value means all.
type Filter struct {
	// OrgID means those about one organization: not those about several, or none.
	OrgID   string
	Via     Via
	Action  string
	Actor   string
	TokenID string
	Subject string
	Outcome Outcome
	// Since and Until bound the time: from Since on, before Until.
	Since, Until time.Time
	// Before continues a list: those with a smaller id.
	Before int64
	// Limit is how many there are at most; 0: store.DefaultLimit.
	Limit int
}

// List lists actions, the newest first.
func List(ctx context.Context, db store.Beginner, f Filter) (list []Action, err error) {
	const stmt = `
SELECT id, at, via, action, token_id, actor, db_role, org_id, subject, details, outcome, code
  FROM daybook.actions
 WHERE (@org = '' OR org_id = @org) AND (@via = '' OR via = @via) AND (@action = '' OR action = @action) AND (@actor = '' OR actor = @actor)
   AND (@token = '' OR token_id = @token) AND (@subject = '' OR subject = @subject) AND (@outcome = '' OR outcome = @outcome)
   AND (@since::timestamptz IS NULL OR at >= @since) AND (@until::timestamptz IS NULL OR at < @until) AND (@before::bigint = 0 OR id < @before::bigint)
 ORDER BY id DESC
 LIMIT @limit`
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		list, err = store.Collect(ctx, tx, pgx.RowToStructByPos[Action], stmt, store.Args{
			"org": f.OrgID, "via": string(f.Via), "action": f.Action, "actor": f.Actor, "token": f.TokenID,
			"subject": f.Subject, "outcome": string(f.Outcome),
			"since": store.TimeOrNil(f.Since), "until": store.TimeOrNil(f.Until), "before": f.Before,
			"limit": cmp.Or(max(f.Limit, 0), store.DefaultLimit),
		})
		return err
	})
	return list, store.Wrap("list actions", err)
}

// Names are the actions that the log has, in alphabetical order.
func Names(ctx context.Context, q store.Querier) ([]string, error) {
	// Each name is found by one step in the index, however many rows have it.
	const stmt = `
WITH RECURSIVE names (name) AS (
    SELECT min(action) FROM daybook.actions
     UNION ALL
    SELECT (SELECT min(a.action) FROM daybook.actions a WHERE a.action > n.name) FROM names n WHERE n.name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL ORDER BY name`
	names, err := store.Collect(ctx, q, pgx.RowTo[string], stmt)
	return names, store.Wrap("list the names of actions", err)
}

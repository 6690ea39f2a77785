package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// orgsSuggested is how many organizations the switch suggests; any other can be typed.
	orgsSuggested = 100
	// orgsFor is how long they are remembered.
	orgsFor = 15 * time.Second
)

// knownOrgs remembers the organizations that the switch suggests, so that no page reads them for
// itself.
type knownOrgs struct {
	mu   sync.Mutex
	ids  []string
	read time.Time
}

// suggestedOrgs are organizations for the switch of a token that reaches several. That they cannot
// be read is no reason to fail.
func (c *console) suggestedOrgs(r *request) []string {
	if r.Token.ID == "" || r.Token.OrgID != nil {
		return nil
	}
	c.orgs.mu.Lock()
	defer c.orgs.mu.Unlock()
	if now := c.now(); c.orgs.read.IsZero() || now.Sub(c.orgs.read) > orgsFor {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		ids, err := store.Collect(ctx, c.Pool, pgx.RowTo[string],
			`SELECT id FROM daybook.organizations ORDER BY id LIMIT $1`, orgsSuggested)
		if err != nil {
			return nil
		}
		c.orgs.ids, c.orgs.read = ids, now
	}
	return slices.Clone(c.orgs.ids)
}

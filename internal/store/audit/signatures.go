package audit

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// checkSignatures checks that each closing has a signature of the key, or that a later one has: the
// hash of a later one contains the hashes of all before it. Openings need none.
func checkSignatures(ctx context.Context, tx pgx.Tx, o Options) (CheckResult, error) {
	const orgs = `SELECT DISTINCT org_id FROM daybook.closings WHERE $1 = '' OR org_id = $1 ORDER BY org_id`
	result := CheckResult{
		Kind: "closing_not_signed", Rule: "each closing, or a later one, is signed by the key, and no signature is of another",
		Findings: []Finding{},
	}
	found := func(c *models.Closing, detail string) {
		result.Count++
		if len(result.Findings) < o.Limit {
			result.Findings = append(result.Findings, Finding{
				OrgID:  c.OrgID,
				Detail: fmt.Sprintf("closing %d, from %s to %s: %s", c.Number, c.StartsOn, c.EndsOn, detail),
			})
		}
	}
	ids, err := store.Collect(ctx, tx, pgx.RowTo[string], orgs, o.OrgID)
	if err != nil {
		return result, store.Wrap(result.Kind, err)
	}
	for _, org := range ids {
		list, err := ledgerdb.Closings(ctx, tx, org, 0, 0)
		if err != nil {
			return result, err
		}
		signed := 0
		for i := range list {
			switch c := &list[i]; {
			case c.Signature == nil:
			case c.SignedBy(o.ClosingKey):
				signed = i + 1
			default:
				found(c, "its signature, of the key "+c.KeyID+", is not one of the key "+models.ClosingKeyID(o.ClosingKey)+" and of this closing")
			}
		}
		for i := signed; i < len(list); i++ {
			if c := &list[i]; c.Signature == nil && c.Action == models.ActionClosed {
				found(c, "neither it nor a later one is signed by the key")
			}
		}
	}
	return result, nil
}

package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEndOfAClaimReadsItsJob: to renew, complete or fail a claim takes no longer beside many
// others, which statistics that are older do not know of.
func TestEndOfAClaimReadsItsJob(t *testing.T) {
	t.Parallel()
	const claims, each, most = 2000, 50, 60
	b := setup(t)
	b.exec(`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at) SELECT 'o', 'noop', '{}', 'cancelled', now() FROM generate_series(1, $1)`, besides)
	b.exec(`ANALYZE daybook.jobs`)
	b.inQueue("p", "", claims)
	b.exec(`SELECT daybook.lease_async_operation(id::uuid) FROM daybook.jobs WHERE org_id = 'p'`)
	for _, call := range []string{
		"daybook.renew_async_operation(id)", "daybook.complete_async_operation(id)",
		"daybook.fail_async_operation(id, 'no')",
	} {
		pages := b.jobPages(b.Pool, func() {
			b.exec(`SELECT `+call+` FROM (SELECT id::uuid FROM daybook.jobs WHERE org_id = 'p' AND state = 'leased' ORDER BY daybook.jobs.id LIMIT $1) x`, each)
		})
		assert.Less(t, pages, int64(claims+each*most), call)
	}
}

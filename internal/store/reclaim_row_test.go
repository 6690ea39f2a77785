package store_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// reclaimedKind is what the rows of a kind have to themselves.
type reclaimedKind struct {
	kind *store.Kind
	// insert makes a leased row of each of leases; read says how they stand.
	insert, read string
	// code is that of a lost attempt, counted what reclaims are after one of a job that waited: a
	// background job is not charged with it.
	code    models.ErrorCode
	counted string
}

// leases are leases of the turn old, whose last sign is an hour old, but for the one that is fresh.
// A job may be tried six times.
const leases = `(VALUES ('ahead', false, 0, false, 1, 1), ('asked', true, 1, false, 6, 1), ('asked before', true, 1, false, 1, -1), ('cancelled', true, 1, true, 6, -1), ('fresh', true, 0, false, 1, -1),
        ('last', true, 0, false, 6, -1), ('waited', false, 0, false, 1, -1), ('waited last', false, 0, false, 6, -1), ('worked', true, 0, false, 1, -1)) AS l (name, working, asked, cancel, attempts, due)`

const leasedColumns = `org_id, state, working, generation, leased_generation, cancel_requested, run_count, ready_at, first_ready_at, last_attempted_at, attempt_started_at, updated_at, turn_id, fence, worker, reclaims`

const leasedValues = `'org_1', 'leased', working, 3 + asked, 3, cancel, attempts, now() + due * interval '1 hour', now() - interval '2 hours',
       now() - CASE name WHEN 'fresh' THEN interval '0' ELSE interval '1 hour' END, now() - interval '1 hour', now() - interval '1 hour', 'run/0/1', 1, 'w', 2`

const leasedRead = `concat_ws(' ', state, run_count, reclaims, last_error_code, CASE WHEN last_error IS NOT NULL THEN 'why' END, CASE WHEN finished_at IS NOT NULL THEN 'ended' END,
       CASE WHEN working THEN 'working' END, CASE WHEN detached THEN 'detached' END, CASE WHEN abs(extract(epoch FROM now() - attempt_started_at)) + abs(extract(epoch FROM now() - last_attempted_at)) < 600 THEN 'anew' END,
       'due ' || round(extract(epoch FROM ready_at - now()) / 3600), 'first ' || round(extract(epoch FROM first_ready_at - now()) / 3600), 'changed ' || round(extract(epoch FROM updated_at - now()) / 3600)`

func reclaimedKinds() map[string]reclaimedKind {
	return map[string]reclaimedKind{
		"jobs": {
			store.Jobs, `INSERT INTO daybook.jobs (id, type, payload, max_attempts, ` + leasedColumns +
				`) SELECT name, 'short', '{}', 6, ` + leasedValues + ` FROM ` + leases,
			`SELECT id, ` + leasedRead + `) FROM daybook.jobs`, models.CodeReclaimed, "2",
		},
		"accounting": {
			store.Accounting, `INSERT INTO daybook.accounting_work_queue (id, document_id, version_hint, not_ready_count, ` +
				leasedColumns + `) SELECT name, name, 1, 4, ` + leasedValues + ` FROM ` + leases,
			`SELECT id, ` + leasedRead + `, 'looks ' || not_ready_count) FROM daybook.accounting_work_queue`,
			models.CodeWorkerLost, "3",
		},
	}
}

// rows are how the rows stand, by their ids.
func (k reclaimedKind) rows(b *bundle) map[string]string {
	b.t.Helper()
	all := map[string]string{}
	var id, row string
	require.NoError(b.t, store.Each(b.t.Context(), b.Pool, []any{&id, &row}, func() error {
		all[id] = strings.Replace(row, " "+string(k.code)+" ", " CODE ", 1)
		return nil
	}, k.read))
	return all
}

// wants says the same of accounting jobs, which also count how often their document was not ready:
// a new request begins anew.
func (k reclaimedKind) wants(want map[string]string) map[string]string {
	for id, row := range want {
		switch {
		case k.kind != store.Accounting:
		case id == "asked" || id == "asked before" || id == "cancelled":
			want[id] = row + " looks 0"
		default:
			want[id] = row + " looks 4"
		}
	}
	return want
}

// lost are the attempts that are logged as lost.
func (k reclaimedKind) lost(b *bundle) []string {
	b.t.Helper()
	list, err := store.Collect(b.t.Context(), b.Pool, pgx.RowTo[string], `
SELECT concat_ws(' ', job_id, outcome, attempt, CASE error_code WHEN $1 THEN 'CODE' END, turn_id, fence, worker, workflow_run_id) FROM daybook.attempt_log ORDER BY job_id COLLATE "C"`, string(k.code))
	require.NoError(b.t, err)
	return list
}

var lostAttempts = []string{
	"asked lost 6 CODE run/0/1 1 w run", "asked before lost 1 CODE run/0/1 1 w run",
	"cancelled lost 6 CODE run/0/1 1 w run",
	"last lost 6 CODE run/0/1 1 w run", "worked lost 1 CODE run/0/1 1 w run",
}

// TestRowsOfReclaimedLeases: what a lease that has expired leaves, by what was asked for meanwhile
// and whether its job was being worked.
func TestRowsOfReclaimedLeases(t *testing.T) {
	t.Parallel()
	for name, k := range reclaimedKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(k.insert)
			got, err := store.NewQueue(b.Pool, k.kind).ReclaimExpired(t.Context())
			require.NoError(t, err)
			assert.Equal(t, store.Reclaimed{Jobs: 8, Lost: 5, Failed: 1}, got)
			assert.Equal(t, k.wants(map[string]string{
				"ahead":        "pending 0 " + k.counted + " due 0 first -2 changed 0",
				"asked":        "pending 0 0 CODE why due 1 first 1 changed 0",
				"asked before": "pending 0 0 CODE why due 0 first 0 changed 0",
				"cancelled":    "cancelled 6 0 CODE why ended due 0 first 0 changed 0",
				"fresh":        "leased 1 2 working due -1 first -2 changed -1",
				"last":         "failed 6 0 CODE why ended due -1 first -2 changed 0",
				"waited":       "pending 0 " + k.counted + " due -1 first -2 changed 0",
				"waited last":  "pending 5 " + k.counted + " due -1 first -2 changed 0",
				"worked":       "pending 1 3 CODE why due -1 first -2 changed 0",
			}), k.rows(b))
			assert.Equal(t, lostAttempts, k.lost(b))
		})
	}
}

// TestRowsOfReclaimedTurns: what the next activity of a turn makes of the leases of one that has
// crashed.
func TestRowsOfReclaimedTurns(t *testing.T) {
	t.Parallel()
	for name, k := range reclaimedKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(k.insert)
			turn := store.Turn{ID: "run/0/1", Fence: 2, Worker: "another", Detached: true}
			taken, err := store.NewQueue(b.Pool, k.kind).ReclaimTurns(t.Context(), turn, []string{turn.ID}, true)
			require.NoError(t, err)
			assert.Len(t, taken.Jobs, 5)
			working := map[*store.Kind]string{store.Jobs: "working "}[k.kind]
			assert.Equal(t, k.wants(map[string]string{
				"ahead":        "leased 1 3 " + working + "detached anew due 1 first -2 changed 0",
				"asked":        "pending 0 0 CODE why due 1 first 1 changed 0",
				"asked before": "pending 0 0 CODE why due 0 first 0 changed 0",
				"cancelled":    "cancelled 6 0 CODE why ended due 0 first 0 changed 0",
				"fresh":        "leased 2 3 CODE why " + working + "detached anew due -1 first -2 changed 0",
				"last":         "failed 6 0 CODE why ended due -1 first -2 changed 0",
				"waited":       "leased 1 3 " + working + "detached anew due -1 first -2 changed 0",
				"waited last":  "leased 6 3 " + working + "detached anew due -1 first -2 changed 0",
				"worked":       "leased 2 3 CODE why " + working + "detached anew due -1 first -2 changed 0",
			}), k.rows(b))
			assert.Equal(t, []string{
				lostAttempts[0], lostAttempts[1], lostAttempts[2], "fresh lost 1 CODE run/0/1 1 w run",
				lostAttempts[3], lostAttempts[4],
			}, k.lost(b))
		})
	}
}

package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestJudge: what is wrong is found, each thing under its name, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statements []string
		lost       bool // 1 is acknowledged and was never accepted
		want       found
		wrong      []string
	}{
		"all is well": {want: found{}},
		"gone":        {lost: true, want: found{gone: 1}, wrong: []string{"1 acknowledged and gone"}},
		"row removed": {
			statements: []string{`DELETE FROM daybook.jobs WHERE type = 'chaos_own'`},
			want:       found{gone: 1}, wrong: []string{"1 acknowledged and gone"},
		},
		"without effect": {
			statements: []string{`DELETE FROM chaos.effects WHERE kind = 'own'`},
			want:       found{noEffect: 1}, wrong: []string{"1 completed without effect"},
		},
		"half of the steps": {
			statements: []string{`DELETE FROM chaos.effects WHERE kind = 'step-2'`},
			want:       found{noEffect: 1}, wrong: []string{"1 completed without effect"},
		},
		"twice": {
			statements: []string{`INSERT INTO chaos.effects (kind, key) VALUES ('own', 1), ('step-1', 2)`},
			want:       found{twice: 2}, wrong: []string{"2 done twice"},
		},
		"called again, which is no wrong": {
			statements: []string{`INSERT INTO chaos.effects (kind, key) VALUES ('plain', 3)`}, want: found{again: 1},
		},
		"never enqueued": {
			statements: []string{`INSERT INTO chaos.effects (kind, key) VALUES ('own', 99)`},
			want:       found{unknown: 1}, wrong: []string{"1 done and never enqueued"},
		},
		"dead letter": {
			statements: []string{`UPDATE daybook.jobs SET state = 'failed', last_error = 'x', last_error_code = 'HANDLER_ERROR' WHERE type = 'chaos_plain'`},
			want:       found{dead: 1}, wrong: []string{"1 dead letters"},
		},
		"out of order": {
			statements: []string{`UPDATE chaos.effects SET key = 15 - key WHERE kind = 'ordered'`}, // 5 and 10 change places
			want:       found{disordered: 1}, wrong: []string{"1 out of order"},
		},
		"charged, a killed worker's and a living one's": {
			statements: []string{`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, worker, turn_id, fence)
SELECT 'job', 'org-0', 'jobs', 'chaos_own', 1, 'lost', 'JOB_LOCK_TIMEOUT_RECLAIMED', 'ended', now(), w, 't', 1
  FROM unnest(ARRAY['killed', 'living']) w`},
			want: found{chargedRightly: 1, chargedWrongly: 1}, wrong: []string{"1 charged wrongly"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			require.NoError(t, prepareTables(t.Context(), db.Pool))
			l := &load{pool: db.Pool, random: (&world{}).newRandom(1), acknowledged: map[int64]acknowledgement{}}
			for _, kind := range []string{"own", "steps", "plain", "ordered", "ordered"} {
				require.NoError(t, l.add(t.Context(), db.Pool, time.Minute, kind))
				if kind == "ordered" { // both in one sequence
					l.next += organizations - 1
				}
				if kind == "plain" {
					l.next = organizations - 1
				}
			}
			keys := work(t.Context(), t, db)
			require.Len(t, keys, 5)
			if c.lost {
				l.acknowledged[77] = acknowledgement{kind: "own"}
			}
			for _, s := range c.statements {
				_, err := db.Pool.Exec(t.Context(), s)
				require.NoError(t, err)
			}
			got, err := l.judge(t.Context(), db.Pool, []string{"killed"})
			require.NoError(t, err)
			assert.Equal(t, c.wrong, got.wrong())
			got.acknowledged, got.documents, got.jobs, got.tasks, got.wrongly = 0, 0, 0, 0, nil
			assert.Equal(t, c.want, got)
		})
	}
}

// work does what workers do: it completes the jobs, and writes their effects.
func work(ctx context.Context, t *testing.T, db *pgtest.DB) []int64 {
	t.Helper()
	const complete = `
WITH done AS (UPDATE daybook.jobs SET state = 'completed', finished_at = now() RETURNING id)
INSERT INTO chaos.effects (kind, key)
SELECT k, a.key FROM done JOIN chaos.accepted a ON a.job_id = done.id
 CROSS JOIN LATERAL unnest(CASE a.kind WHEN 'steps' THEN ARRAY['step-1', 'step-2'] ELSE ARRAY[a.kind] END) k ORDER BY a.key`
	_, err := db.Pool.Exec(ctx, complete)
	require.NoError(t, err)
	rows, err := db.Pool.Query(ctx, `SELECT DISTINCT key FROM chaos.effects ORDER BY 1`)
	require.NoError(t, err)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return keys
}

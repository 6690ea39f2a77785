package store_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models/locks"
)

// expired is after what time leases end that nothing is known of: the machine may be slow.
const expired = store.StaleAfter - 500*time.Millisecond

// living is a session that shows that the worker of the tests' turns lives, until it ends.
func (b *bundle) living() (end func()) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.URL)
	require.NoError(b.t, err)
	pid := conn.PgConn().PID()
	b.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(b.t.Context())) })
	end = func() {
		require.NoError(b.t, conn.Close(b.t.Context()))
		require.Eventually(b.t, func() bool {
			return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM pg_stat_activity WHERE pid = $1`, pid) == 0
		}, pgtest.Patience, time.Millisecond)
	}
	_, err = conn.Exec(b.t.Context(), `SELECT pg_advisory_lock_shared($1, hashtext('test'))`, locks.Workers)
	require.NoError(b.t, err)
	return end
}

// working has a turn of the worker hold a job that it is working.
func (b *bundle) working() store.Turn {
	b.t.Helper()
	b.pending("a", 2, 1)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 1)
	require.Len(b.t, jobs, 1)
	begun, err := b.store.BeginWaiting(b.t.Context(), turn, []string{jobs[0].ID})
	require.NoError(b.t, err)
	require.Len(b.t, begun.Working, 1)
	return turn
}

// renewed is how long ago the lease was renewed, by the database's clock; nil: there is none.
func (b *bundle) renewed() (age *time.Duration) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT max(clock_timestamp() - last_attempted_at) FROM daybook.accounting_work_queue WHERE state = 'leased'`).Scan(&age))
	return age
}

// endsAfter checks, as the engine does, until the lease has ended, and returns how long that took
// after it was renewed, and whether the job was charged.
func (b *bundle) endsAfter(r *store.Reclaimer) (age time.Duration, charged bool) {
	b.t.Helper()
	for began := time.Now(); time.Since(began) < pgtest.Patience; {
		if at := b.renewed(); at != nil {
			age = *at
		}
		got, pause, err := r.Check(b.t.Context())
		require.NoError(b.t, err)
		if got.Jobs > 0 {
			assert.Equal(b.t, 1, got.Jobs)
			return age, got.Lost == 1
		}
		time.Sleep(pause)
	}
	require.Fail(b.t, "the lease does not end")
	return 0, false
}

// seen returns a Reclaimer that has seen the worker live.
func (b *bundle) seen() *store.Reclaimer {
	b.t.Helper()
	r := b.store.NewReclaimer()
	_, _, err := r.Check(b.t.Context())
	require.NoError(b.t, err)
	return r
}

// TestDepartedWorkersLeasesEndEarly: PostgreSQL ends the sessions of a killed process at once.
func TestDepartedWorkersLeasesEndEarly(t *testing.T) {
	t.Parallel()
	for name, idle := range map[string]bool{"while it has leases": false, "before it was seen to have one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			end := b.living()
			var r *store.Reclaimer
			if idle {
				r = b.seen()
			}
			b.working()
			if !idle {
				r = b.seen()
			}
			end()
			age, charged := b.endsAfter(r)
			assert.True(t, charged, "it may be the job that has killed its worker")
			assert.Greater(t, age, 4*time.Second)
			assert.Less(t, age, expired)
		})
	}
}

// TestLeasesThatLastUntilTheyExpire: a worker that nothing is known of keeps its leases. One that
// lives is not charged, unless it is the same job again and again.
func TestLeasesThatLastUntilTheyExpire(t *testing.T) {
	t.Parallel()
	const living = "a session of its name lives"
	for name, prepare := range map[string]func(*bundle) *store.Reclaimer{
		"never seen": func(b *bundle) *store.Reclaimer {
			b.living()()
			b.working()
			return b.seen()
		},
		living: func(b *bundle) *store.Reclaimer {
			b.living()
			end := b.living()
			b.working()
			r := b.seen()
			end()
			return r
		},
		"a session of its name lives, as it did the times before": func(b *bundle) *store.Reclaimer {
			b.living()
			b.working()
			b.exec(`UPDATE daybook.accounting_work_queue SET reclaims = 3`)
			return b.seen()
		},
		"PostgreSQL was started again": func(b *bundle) *store.Reclaimer {
			end := b.living()
			b.working()
			r := b.seen()
			end()
			r.Restarted()
			return r
		},
		"an outage": func(b *bundle) *store.Reclaimer {
			end := b.living()
			b.working()
			r := b.seen()
			end()
			cut, cancel := context.WithCancel(b.t.Context())
			cancel()
			_, _, err := r.Check(cut)
			require.Error(b.t, err)
			return r
		},
		"renewed without a session": func(b *bundle) *store.Reclaimer {
			end := b.living()
			turn := b.working()
			r := b.seen()
			end()
			require.Eventually(b.t, func() bool {
				got, _, err := r.Check(b.t.Context())
				return assert.NoError(b.t, err) && assert.Zero(b.t, got.Jobs) && *b.renewed() > 3*time.Second
			}, pgtest.Patience, 200*time.Millisecond)
			held, err := b.store.Renew(b.t.Context(), turn, []string{}, 0)
			require.NoError(b.t, err)
			require.Len(b.t, held.Held, 1)
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			age, charged := b.endsAfter(prepare(b))
			assert.Greater(t, age, expired)
			assert.Equal(t, name != living, charged)
		})
	}
}

// TestLivingWorkerWithoutSessions: all of a living worker's sessions are ended again and again. It
// is connected again at once, and renews: nothing is taken from it.
func TestLivingWorkerWithoutSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.store.NewWaker("test", 5*time.Millisecond, slog.New(slog.DiscardHandler))
	t.Cleanup(w.Close)
	w.Subscribe().Close() // it has no waiter: all of its turns work
	lives := func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM pg_locks WHERE classid = $1::integer::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, locks.Workers) == 1
	}
	require.Eventually(t, lives, pgtest.Patience, 5*time.Millisecond)
	turn := b.working()
	r := b.seen()
	for began := time.Now(); time.Since(began) < 8*time.Second; {
		b.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE classid = $1::integer::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, locks.Workers)
		if *b.renewed() > store.RenewEvery {
			_, err := b.store.Renew(t.Context(), turn, []string{}, 0)
			require.NoError(t, err)
		}
		got, pause, err := r.Check(t.Context())
		require.NoError(t, err)
		require.Zero(t, got.Jobs)
		time.Sleep(min(pause, 500*time.Millisecond))
	}
	require.Eventually(t, lives, pgtest.Patience, 5*time.Millisecond)
}

package workers_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/internal/watching/sampler"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/server"
	"github.com/daybook-dev/daybook/workers"
)

// TestTwoPrimaries: while two servers of the address take writes, no job begins, doctor says so
// first, and the server changes nothing. The same holds while the only one that takes writes is
// behind the timeline of another. When the older one has stopped, work goes on at the promoted one.
func TestTwoPrimaries(t *testing.T) {
	t.Parallel()
	old := postgresOf(t, nil, "", 0)
	require.NoError(t, migrations.Up(t.Context(), old.DatabaseURL))
	_, token, err := tokens.Create(t.Context(), poolOf(t, old.DatabaseURL),
		tokens.New{Name: "test", Scopes: []tokens.Scope{tokens.Read, tokens.Enqueue, tokens.Operate}})
	require.NoError(t, err)
	dir := t.TempDir()
	promoted := postgresOf(t, old, dir, 0)
	pool := poolOf(t, pgtest.Servers(t, old.DatabaseURL, promoted.DatabaseURL))
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[slowJob]) error { return nil })
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: pool, Registry: r, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer due.Close()
	enqueue := func(address string) {
		_, err := queue.EnqueueJob(t.Context(), poolOf(t, address), "acme", slowJob{1}, queue.JobOptions{})
		require.NoError(t, err)
	}
	// A run that has begun when the split is noticed waits for its end, as in any outage.
	run := func(limit int) (workers.DueReport, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return due.Run(ctx, limit)
	}
	enqueue(old.DatabaseURL)
	report, err := due.Run(t.Context(), 10)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	assert.True(t, health.Check(t.Context(), health.Options{Pool: pool}).Working)

	admin := poolOf(t, promoted.AdminURL)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // what it does not have yet, it would never get
		var n int
		require.NoError(c, admin.QueryRow(t.Context(), `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`).Scan(&n))
		assert.Equal(c, 1, n)
	}, time.Minute, 50*time.Millisecond)
	_, err = admin.Exec(t.Context(), `SELECT pg_promote()`)
	require.NoError(t, err)

	enqueue(old.DatabaseURL)
	enqueue(promoted.DatabaseURL)
	require.Eventually(t, func() bool {
		_, err = run(0) // takes nothing until it is noticed
		return err != nil
	}, time.Minute, 50*time.Millisecond)
	require.ErrorContains(t, err, "do not agree on one primary")
	assert.ErrorContains(t, err, "(timeline 2)")
	splitFirst(t, pool, "(timeline 1)")
	splitPublished(t, pool)
	serving := serve(t, pool, token)
	serving.refuses(t)
	for _, address := range []string{old.DatabaseURL, promoted.DatabaseURL} {
		var states string
		require.NoError(t, poolOf(t, address).QueryRow(t.Context(),
			`SELECT string_agg(state::text, ' ' ORDER BY id) FROM daybook.jobs`).Scan(&states))
		assert.Equal(t, "completed pending", states)
	}

	// The promoted one comes back as a standby, and the old one alone takes writes.
	var data string
	require.NoError(t, admin.QueryRow(t.Context(), `SHOW data_directory`).Scan(&data))
	port := int(admin.Config().ConnConfig.Port)
	require.NoError(t, promoted.Stop(t.Context()))
	require.NoError(t, os.WriteFile(filepath.Join(data, "standby.signal"), nil, 0o666))
	promoted = postgresOf(t, old, dir, port)
	require.Eventually(t, func() bool {
		_, err = run(10)
		return err != nil && strings.Contains(err.Error(), "another server was promoted since")
	}, time.Minute, 50*time.Millisecond)
	splitFirst(t, pool, "is on timeline 2")
	serving.refuses(t)
	admin = poolOf(t, promoted.AdminURL)

	require.NoError(t, old.Stop(t.Context()))
	_, err = admin.Exec(t.Context(), `SELECT pg_promote()`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		report, err = run(10)
		return err == nil && report.Completed == 1
	}, time.Minute, 50*time.Millisecond)
}

// postgresOf starts a server, or a standby of another one. An empty dir is a temporary one, port 0 a
// free one.
func postgresOf(t *testing.T, primary *devstack.Stack, dir string, port int) *devstack.Stack {
	t.Helper()
	s, err := devstack.Start(t.Context(), devstack.Options{
		Private: true, NoTemporal: true, FastAndUnsafe: true, StandbyOf: primary, Dir: dir, PostgresPort: port,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
	return s
}

// splitFirst checks that doctor says first that there are two primaries.
func splitFirst(t *testing.T, pool *pgxpool.Pool, says string) {
	t.Helper()
	found := health.Check(t.Context(), health.Options{Pool: pool})
	require.NotEmpty(t, found.Findings)
	assert.Equal(t, health.SplitBrain, found.Findings[0].Code)
	assert.False(t, found.Working)
	assert.Contains(t, found.Summary, says)
}

// splitPublished checks that the gauges have the finding, on which DaybookFinding fires.
func splitPublished(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	s := sampler.New(sampler.Options{Pool: pool, Name: "test", Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, s.Sample(t.Context()))
	g, ok := s.Gauges()
	require.True(t, ok)
	assert.Contains(t, g.Database.Findings,
		figures.Finding{Code: string(health.SplitBrain), Severity: string(health.Critical), Count: 1})
}

// served is a server on a pool, for the console's and the API's callers with a token.
type served struct {
	address, token string
	browser        *http.Client
}

func serve(t *testing.T, pool *pgxpool.Pool, token string) *served {
	t.Helper()
	s, err := server.New(t.Context(), server.Options{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	serving := httptest.NewServer(s)
	t.Cleanup(serving.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &served{serving.URL, token, &http.Client{Jar: jar}}
}

func (s *served) ask(t *testing.T, method, path, kind, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.address+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", kind)
	a, err := s.browser.Do(r)
	require.NoError(t, err)
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, string(text)
}

// refuses checks that nothing can be changed, and all can be read.
func (s *served) refuses(t *testing.T) {
	t.Helper()
	const form = "application/x-www-form-urlencoded"
	status, body := s.ask(t, http.MethodPost, "/console/sign-in", form, url.Values{"token": {s.token}}.Encode())
	require.Equal(t, http.StatusOK, status, body)
	for path, ask := range map[string][2]string{
		"/api/jobs/enqueue":           {"application/json", `{"orgId": "acme", "type": "slow", "payload": {}}`},
		"/console/dead-letters/retry": {form, "type=slow"},
	} {
		status, body = s.ask(t, http.MethodPost, path, ask[0], ask[1])
		assert.Equal(t, http.StatusServiceUnavailable, status, body)
		assert.Contains(t, body, "SPLIT_BRAIN")
	}
	status, body = s.ask(t, http.MethodGet, "/api/queues", "", "")
	assert.Equal(t, http.StatusOK, status, body)
	status, body = s.ask(t, http.MethodGet, "/console/", "", "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "SPLIT_BRAIN")
}

func poolOf(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

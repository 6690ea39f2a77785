package top_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/top"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixed is a Reading of one picture, or of an error.
type fixed struct {
	picture top.Picture
	err     error
}

func (f fixed) Read(context.Context) (top.Picture, error) { return f.picture, f.err }

// shown returns the lines of a model's screen.
func shown(m tea.Model) []string { return strings.Split(m.View().Content, "\n") }

// with gives messages to a model, one after the other. What it asks for is not done.
func with(m tea.Model, messages ...tea.Msg) tea.Model {
	for _, message := range messages {
		m, _ = m.Update(message)
	}
	return m
}

func key(text string) tea.KeyPressMsg {
	switch text {
	case "down":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "tab":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	}
	return tea.KeyPressMsg{Code: []rune(text)[0], Text: text}
}

func someJobs() top.Picture {
	p := top.Picture{At: time.Now(), SampledAt: time.Now(), Summary: "Work gets done", Working: true}
	for _, q := range store.Queues() {
		p.Queues = append(p.Queues,
			top.Row{Kind: q.Name, CompletedPerSecond: 12.5, Counts: figures.Counts{Due: 3, Failed: 1}})
	}
	for i := range 60 {
		p.Types = append(p.Types, top.Row{Kind: "jobs", Type: "type" + strings.Repeat("x", i), Owner: "growth"})
	}
	p.Failures = []top.Failure{{
		Kind: "jobs", Type: "email", Code: "NETWORK_ERROR", Failed: 2, Retried: 7, Waiting: 2,
		Owner: "growth",
	}}
	return p
}

// start returns a screen of a size that has read its first picture.
func start(t *testing.T, f fixed, width, height int) tea.Model {
	t.Helper()
	m := tea.Model(top.New(t.Context(), f, time.Minute, false))
	m = with(m, tea.WindowSizeMsg{Width: width, Height: height})
	return with(m, m.Init()())
}

func TestScreenFitsItsTerminal(t *testing.T) {
	t.Parallel()
	p := someJobs()
	p.Findings = []health.Finding{{
		Code: "NO_WORKER", Severity: health.Critical,
		Says: strings.Repeat("No worker polls. ", 40),
	}}
	p.Types[0].Type = "evil\x1b[2J\nname"
	for _, size := range [][2]int{{40, 10}, {80, 24}, {200, 60}} {
		lines := shown(start(t, fixed{picture: p}, size[0], size[1]))
		require.LessOrEqual(t, len(lines), size[1])
		for _, line := range lines {
			require.LessOrEqual(t, utf8.RuneCountInString(line), max(size[0], 60), line)
			require.NotContains(t, line, "\x1b", "a control character of a name reaches the terminal")
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	m := start(t, fixed{picture: someJobs()}, 120, 30)
	require.Contains(t, m.View().Content, "[1 types]")
	require.Contains(t, m.View().Content, "typexx ")

	m = with(m, key("2"))
	require.Contains(t, m.View().Content, "NETWORK_ERROR")
	require.Contains(t, m.View().Content, "growth")
	m = with(m, key("tab"))
	require.Contains(t, m.View().Content, "[3 organizations]")
	require.Contains(t, m.View().Content, "No organization has open or failed jobs.")

	m = with(m, key("1"), key("down"), key("down"), key("down"))
	require.NotContains(t, m.View().Content, "typexx ", "the list has been scrolled")
	m = with(m, key("p"))
	require.Contains(t, m.View().Content, "held")
	_, command := m.Update(key("q"))
	require.IsType(t, tea.QuitMsg{}, command())
}

func TestFailedReadIsShown(t *testing.T) {
	t.Parallel()
	m := start(t, fixed{err: errors.New("the database is unavailable")}, 100, 20)
	require.Contains(t, m.View().Content, "the database is unavailable")
}

// Durations are numbers that people write, however short or long they are.
func TestDurationsAreReadable(t *testing.T) {
	t.Parallel()
	p := someJobs()
	p.Queues[0].LatencyP50, p.Queues[0].LatencyP95, p.Queues[0].OldestDueSeconds = 0.38, 0.9412, 9.44
	p.Leases = []store.LeaseGroup{{Kind: "jobs", Worker: "w", Jobs: 1, Renewed: p.At.Add(-940 * time.Millisecond)}}
	var b strings.Builder
	require.NoError(t, top.Write(&b, p, 0))
	require.NotContains(t, b.String(), "e+")
	for _, want := range []string{"380 ms", "941 ms", "9.4 s", "less than 1 s ago"} {
		require.Contains(t, b.String(), want)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	_, err := db.Pool.Exec(ctx, `
SELECT daybook.note_job_types('jobs', 'w', '{email}', '{""}', '{growth}', '{3}', '{60}', '{1}', '{f}');
INSERT INTO daybook.jobs (org_id, type, payload, ready_at)
SELECT 'acme', 'email', '{}', now() - interval '1 minute' FROM generate_series(1, 4);
INSERT INTO daybook.jobs (org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
SELECT 'acme', 'email', '{}', 'failed', 'e', 'NETWORK_ERROR', now(), 5 FROM generate_series(1, 2)`)
	require.NoError(t, err)
	var waited figures.Distribution
	for range 600 {
		waited.Observe(20 * time.Millisecond)
	}
	require.NoError(t, figures.AddHistory(ctx, db.Pool, []figures.Attempts{
		{
			Outcome: figures.Outcome{Kind: "jobs", Type: "email", Outcome: "completed"}, Count: 600, Waited: waited,
			Took: waited,
		},
		{Outcome: figures.Outcome{Kind: "jobs", Type: "email", Outcome: "retried", Code: "NETWORK_ERROR"}, Count: 30},
	}))

	p, err := (&top.Reader{Pool: db.Pool}).Read(ctx)
	require.NoError(t, err)
	require.NotEmpty(t, p.Summary)
	require.Len(t, p.Queues, len(store.Queues()))
	require.Len(t, p.Types, 1)
	email := p.Types[0]
	require.Equal(t, "growth", email.Owner)
	require.Equal(t, int64(4), email.Due)
	require.GreaterOrEqual(t, email.OldestDueSeconds, 60.0)
	require.Greater(t, email.CompletedPerSecond, 1.0)
	require.Greater(t, email.FailedPerMinute, 1.0)
	require.Positive(t, email.LatencyP95)
	require.Equal(t, []top.Failure{{
		Kind: "jobs", Type: "email", Code: "NETWORK_ERROR", Retried: 30, Waiting: 2,
		Owner: "growth",
	}}, p.Failures)

	var b strings.Builder
	require.NoError(t, top.Write(&b, p, 0))
	require.Contains(t, b.String(), "NETWORK_ERROR")
	require.Contains(t, b.String(), "email")
}

// The rows of queues, of organizations and of workers tell the same, also where a process has
// written other depths a moment ago.
func TestRowsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ctx := t.Context()
	require.NoError(t, figures.WriteGauges(ctx, db.Pool, figures.Gauges{
		Holder: "another", Kinds: []figures.Kind{{Kind: "jobs", Counts: figures.Counts{Due: 40, Leased: 9}}},
	}))
	_, err := db.Pool.Exec(ctx, `
INSERT INTO daybook.jobs (org_id, type, payload) SELECT 'acme', 'email', '{}' FROM generate_series(1, 3);
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
SELECT 'acme', 'email', '{}', 'leased', 1, 't', 1, 0, now(), now(), 'w' FROM generate_series(1, 2)`)
	require.NoError(t, err)
	p, err := (&top.Reader{Pool: db.Pool}).Read(ctx)
	require.NoError(t, err)
	require.Len(t, p.Organizations, 1)
	require.Len(t, p.Leases, 1)
	for _, q := range p.Queues {
		if q.Kind == "jobs" {
			require.Equal(t, p.Organizations[0].Pending, q.Due+q.Waiting)
			require.Equal(t, p.Organizations[0].Leased, q.Leased)
			require.Equal(t, p.Leases[0].Jobs, q.Leased)
		}
	}
}

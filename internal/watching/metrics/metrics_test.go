package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/watching/metrics"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func setup(t *testing.T, o metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close(context.WithoutCancel(t.Context()))) })
	return m
}

// scrape reads what Prometheus reads.
func scrape(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	require.NoError(t, err)
	return families
}

// labels are those of one series, as text.
func labels(s *dto.Metric) string {
	var all []string
	for _, l := range s.GetLabel() {
		all = append(all, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// value is that of the series with the labels.
func value(t *testing.T, f *dto.MetricFamily, of string) float64 {
	t.Helper()
	var there []string
	for _, s := range f.GetMetric() {
		if labels(s) == of {
			return s.GetGauge().GetValue() + s.GetCounter().GetValue() + float64(s.GetHistogram().GetSampleCount())
		}
		there = append(there, labels(s))
	}
	require.Fail(t, "no such series", "%s{%s}: there are %v", f.GetName(), of, there)
	return 0
}

// everything is told of each metric once.
func everything(t *testing.T) *metrics.Metrics {
	t.Helper()
	m := setup(t, metrics.Options{Organizations: true})
	m.Sink().Observe([]events.Event{
		{Name: events.Leased, Kind: "jobs", Type: "email", OrgID: "o"},
		{
			Name: events.Completed, Kind: "jobs", Type: "email", OrgID: "o", Attempt: 2, Waited: time.Second,
			Took: 100 * time.Millisecond,
		},
		{
			Name: events.Completed, Kind: "jobs", Type: "email", OrgID: "o", Attempt: 1, Waited: time.Minute,
			Took: 100 * time.Millisecond,
		},
		{Name: events.Failed, Kind: "jobs", Type: "email", OrgID: "o", Attempt: 3, Code: "TIMEOUT", Took: time.Minute},
		{Name: events.Reclaimed, Kind: "jobs", Type: "email", OrgID: "o", Code: "JOB_LOCK_TIMEOUT_RECLAIMED"},
	})
	turns, ok := m.Sink().(events.TurnSink)
	require.True(t, ok)
	turns.ObserveTurn(events.Turn{Kind: "jobs", Jobs: 70})
	turns.ObserveWakeup("jobs", events.Notification)
	turns.ObserveLanes("jobs", 2, 1)
	m.RuleEvaluated(30 * time.Microsecond)
	m.Requested("/api/jobs", http.MethodGet, http.StatusOK)
	m.Requested("", "BREW", http.StatusMethodNotAllowed)
	m.AddPool(pgtest.New(t).Pool)
	m.SetSampler(func() (figures.Gauges, bool) { return sample(), true })
	return m
}

func sample() figures.Gauges {
	now := time.Now()
	due, up := now.Add(-time.Hour), true
	return figures.Gauges{
		SampledAt: now,
		Kinds: []figures.Kind{{
			Kind: "jobs", Counts: figures.Counts{Due: 7, Failed: 1}, OldestDueAt: &due, OldestDueAge: time.Hour,
			StaleLeases: 1, Unhandled: 2,
			Figures: figures.Figures{
				Types: []figures.Type{{
					Type: "email", Counts: figures.Counts{Due: 5, Failed: 1}, OldestDueAt: &due,
					Unhandled: 2, Owner: "shop",
				}},
				HeldBack:      figures.HeldBack{Paused: 3},
				HeldQueues:    []figures.HeldQueue{{Queue: "bank", Reason: figures.HeldPaused, Jobs: 2}},
				HeldSequences: 4,
				Organizations: []figures.Organization{{OrgID: "o", Due: 7}},
				Workflow:      &figures.Workflow{Running: true, Paused: true, PausedSince: &due, Workers: 2},
			},
		}, {Kind: "tasks"}},
		Database: figures.Database{
			OldestSnapshot: &figures.Snapshot{Since: due}, Tables: []figures.Table{{Name: "daybook.jobs", Rows: 9, Dead: 4}},
			PausedOrganizations: 1, TemporalUp: &up,
			Findings: []figures.Finding{{Code: "WORKFLOW_PAUSED", Severity: "critical", Kind: "jobs", Count: 1}},
		},
	}
}

// TestContract compares what is exposed with the contract and with docs/metrics.md, in both
// directions.
func TestContract(t *testing.T) {
	t.Parallel()
	families := scrape(t, everything(t))
	text, err := os.ReadFile("../../../docs/metrics.md")
	require.NoError(t, err)
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(daybook_[a-z_]+)` \\|(.*)\\|$").FindAllStringSubmatch(string(text),
		-1) {
		rows[row[1]] = strings.Split(row[2], "|")
	}
	for _, d := range metrics.Definitions() {
		row, ok := rows[d.Name]
		if assert.True(t, ok, "%s is not in docs/metrics.md", d.Name) {
			unit := map[string]string{"": "", "s": "seconds"}[d.Unit]
			var names []string
			for _, l := range d.Labels {
				names = append(names, "`"+l+"`")
			}
			assert.Equal(t, []string{string(d.Type), unit, strings.Join(names, " "), string(d.Source)},
				[]string{
					strings.TrimSpace(row[0]), strings.TrimSpace(row[1]), strings.TrimSpace(row[2]),
					strings.TrimSpace(row[3]),
				}, d.Name)
		}
		delete(rows, d.Name)
		f, ok := families[d.Name]
		if !assert.True(t, ok, "%s is not exposed", d.Name) {
			continue
		}
		assert.Equal(t, d.Help, f.GetHelp())
		assert.Equal(t, strings.ToUpper(string(d.Type)), f.GetType().String(), d.Name)
		var got []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			got = append(got, l.GetName())
		}
		assert.ElementsMatch(t, d.Labels, got, d.Name)
		delete(families, d.Name)
	}
	assert.Empty(t, rows, "docs/metrics.md has metrics that there are not")
	for name := range families {
		assert.False(t, strings.HasPrefix(name, "daybook_"), "%s is exposed and in no contract", name)
	}
}

// TestValues looks at figures that were told.
func TestValues(t *testing.T) {
	t.Parallel()
	families := scrape(t, everything(t))
	for _, c := range []struct {
		name, of string
		want     float64
	}{
		{"daybook_job_outcomes_total", "code=,kind=jobs,outcome=completed,type=email", 2},
		{"daybook_job_outcomes_total", "code=TIMEOUT,kind=jobs,outcome=failed,type=email", 1},
		{"daybook_organization_outcomes_total", "kind=jobs,org=o,outcome=completed", 2},
		{"daybook_job_latency_seconds", "kind=jobs,type=email", 2},
		{"daybook_job_duration_seconds", "kind=jobs,type=email", 3},
		{"daybook_job_attempts", "kind=jobs,type=email", 3},
		{"daybook_reclaims_total", "kind=jobs", 1},
		{"daybook_lanes", "kind=jobs,state=active", 2},
		{"daybook_http_requests_total", "method=other,route=,status=405", 1},
		{"daybook_queue_jobs", "kind=jobs,state=due,type=email", 5},
		{"daybook_queue_jobs", "kind=jobs,state=due,type=other", 2},
		{"daybook_queue_jobs", "kind=tasks,state=due,type=", 0},
		{"daybook_queue_oldest_due_age_seconds", "kind=jobs,type=email", 3600},
		{"daybook_queue_held_back_jobs", "kind=jobs,reason=paused", 3},
		{"daybook_named_queue_held_back_jobs", "kind=jobs,queue=bank,reason=paused", 2},
		{"daybook_held_sequences", "kind=jobs", 4},
		{"daybook_workflow_paused_seconds", "kind=jobs", 3600},
		{"daybook_workers", "kind=jobs", 2},
		{"daybook_type_info", "kind=jobs,owner=shop,type=email", 1},
		{"daybook_oldest_snapshot_age_seconds", "", 3600},
		{"daybook_table_dead_rows", "table=daybook.jobs", 4},
		{"daybook_finding", "code=WORKFLOW_PAUSED,kind=jobs,severity=critical", 1},
		{"daybook_pool_connections", "state=max", 16},
	} {
		assert.InDelta(t, c.want, value(t, families[c.name], c.of), 1e-6, c.name)
	}
	latency := families["daybook_job_latency_seconds"].GetMetric()[0].GetHistogram()
	assert.InDelta(t, 61, latency.GetSampleSum(), 1e-6)
}

// TestGaugesFallBack has gauges fall back to zero, and vanish when another process publishes them.
func TestGaugesFallBack(t *testing.T) {
	t.Parallel()
	m := setup(t, metrics.Options{})
	now, publishes := sample(), true
	m.SetSampler(func() (figures.Gauges, bool) { return now, publishes })
	assert.InDelta(t, 5, value(t, scrape(t, m)["daybook_queue_jobs"], "kind=jobs,state=due,type=email"), 0)

	now.Kinds, now.Database.Findings = []figures.Kind{{Kind: "jobs"}, {Kind: "tasks"}}, nil
	families := scrape(t, m)
	for of, name := range map[string]string{
		"kind=jobs,state=due,type=email":                   "daybook_queue_jobs",
		"kind=jobs,type=email":                             "daybook_queue_oldest_due_age_seconds",
		"code=WORKFLOW_PAUSED,kind=jobs,severity=critical": "daybook_finding",
		"kind=jobs,reason=paused":                          "daybook_queue_held_back_jobs",
		"kind=jobs,queue=bank,reason=paused":               "daybook_named_queue_held_back_jobs",
		"kind=jobs":                                        "daybook_held_sequences",
	} {
		assert.Zero(t, value(t, families[name], of), name)
	}

	publishes = false
	families = scrape(t, m)
	for _, d := range metrics.Definitions() {
		if d.Source == metrics.Sampler {
			assert.NotContains(t, families, d.Name, "another process publishes it")
		}
	}
	publishes = true
	assert.Empty(t, scrape(t, m)["daybook_finding"].GetMetric(), "what was seen before is forgotten")
}

// TestLabelsAreBounded tells a hundred types, error codes and organizations apart.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := setup(t, metrics.Options{Organizations: true})
	for i := range 150 {
		m.Sink().Observe([]events.Event{{
			Name: events.Completed, Kind: "jobs", Type: fmt.Sprint("type-", i),
			OrgID: fmt.Sprint("org-", i),
		}})
		m.Sink().Observe([]events.Event{{Name: events.Failed, Kind: "accounting", Code: fmt.Sprint("CODE_", i)}})
	}
	families := scrape(t, m)
	assert.Len(t, families["daybook_job_outcomes_total"].GetMetric(), 2*101)
	assert.InDelta(t, 50, value(t, families["daybook_job_outcomes_total"],
		"code=,kind=jobs,outcome=completed,type=other"), 0)
	assert.InDelta(t, 50, value(t, families["daybook_job_outcomes_total"],
		"code=other,kind=accounting,outcome=failed,type="), 0)
	assert.InDelta(t, 50, value(t, families["daybook_organization_outcomes_total"],
		"kind=jobs,org=other,outcome=completed"), 0)
}

// TestTemporal has the metrics of Temporal's SDK beside Daybook's, in seconds.
func TestTemporal(t *testing.T) {
	t.Parallel()
	m := setup(t, metrics.Options{})
	h := m.Temporal().WithTags(map[string]string{"namespace": "default"})
	h.Counter("temporal_request").Inc(2)
	h.Timer("temporal_request_latency").Record(20 * time.Millisecond)
	families := scrape(t, m)
	assert.InDelta(t, 2, value(t, families["temporal_request_total"], "namespace=default"), 0)
	latency := families["temporal_request_latency_seconds"].GetMetric()[0].GetHistogram()
	assert.Len(t, latency.GetBucket(), len(figures.Bounds())+1)
}

// TestHistory adds what was told to the history, also what could not be added at first.
func TestHistory(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := setup(t, metrics.Options{})
	m.Sink().Observe([]events.Event{
		{Name: events.Completed, Kind: "jobs", Type: "email", OrgID: "o", Waited: time.Second, Took: time.Millisecond},
		{Name: events.GivenBack, Kind: "jobs", Type: "email", OrgID: "o"},
	})
	_, err := db.Pool.Exec(t.Context(), `ALTER TABLE daybook.history RENAME TO elsewhere`)
	require.NoError(t, err)
	require.Error(t, m.AddHistory(t.Context(), db.Pool))
	m.Sink().Observe([]events.Event{{Name: events.Completed, Kind: "jobs", Type: "email", OrgID: "p"}})
	_, err = db.Pool.Exec(t.Context(), `ALTER TABLE daybook.elsewhere RENAME TO history`)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m.KeepHistory(ended, db.Pool)
	bars, err := figures.History(t.Context(), db.Pool, figures.Filter{Since: time.Now().Add(-time.Hour), ByType: true})
	require.NoError(t, err)
	require.Len(t, bars, 1)
	assert.Equal(t, figures.Outcome{Kind: "jobs", Type: "email", Outcome: "completed"}, bars[0].Outcome)
	assert.EqualValues(t, 2, bars[0].Count)
}

// unanswered is a database whose commits are not answered.
type unanswered struct {
	*pgxpool.Pool
	// lost: nothing is committed.
	lost bool
}

// BeginTx implements store.Beginner.
func (u unanswered) BeginTx(ctx context.Context, o pgx.TxOptions) (pgx.Tx, error) {
	tx, err := u.Pool.BeginTx(ctx, o)
	return unansweredTx{tx, u.lost}, err
}

type unansweredTx struct {
	pgx.Tx
	lost bool
}

// Commit implements pgx.Tx.
func (u unansweredTx) Commit(ctx context.Context) error {
	end := u.Tx.Commit
	if u.lost {
		end = u.Rollback
	}
	return errors.Join(end(ctx), io.ErrUnexpectedEOF)
}

// TestHistoryIsAddedOnce: what may have been added is added again only where it was not.
func TestHistoryIsAddedOnce(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{true, false} {
		t.Run(fmt.Sprintf("lost %t", lost), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			m := setup(t, metrics.Options{})
			m.Sink().Observe([]events.Event{{Name: events.Completed, Kind: "jobs", Type: "email"}})
			require.ErrorIs(t, m.AddHistory(t.Context(), unanswered{db.Pool, lost}), io.ErrUnexpectedEOF)
			require.NoError(t, m.AddHistory(t.Context(), db.Pool))
			require.NoError(t, m.AddHistory(t.Context(), db.Pool))
			bars, err := figures.History(t.Context(), db.Pool, figures.Filter{Since: time.Now().Add(-time.Hour)})
			require.NoError(t, err)
			require.Len(t, bars, 1)
			assert.EqualValues(t, 1, bars[0].Count)
		})
	}
}

// TestPush pushes to a collector that the environment names.
func TestPush(t *testing.T) {
	arrived := make(chan *http.Request, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r }))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "team=shop")
	m, err := metrics.New(t.Context(), metrics.Options{})
	require.NoError(t, err)
	require.NoError(t, m.Close(t.Context()))
	r := <-arrived
	assert.Equal(t, "/v1/metrics", r.URL.Path)
	assert.Equal(t, "shop", r.Header.Get("team"))

	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon")
	_, err = metrics.New(t.Context(), metrics.Options{})
	require.ErrorContains(t, err, "want http/protobuf or grpc")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	m, err = metrics.New(t.Context(), metrics.Options{})
	require.NoError(t, err)
	require.NoError(t, m.Close(t.Context()))
}

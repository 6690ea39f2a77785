package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/watching/metrics"
	"github.com/daybook-dev/daybook/internal/watching/sampler"
)

// MetricsOptions say what is measured. Pool is required; the zero value of each other field is its
// default.
type MetricsOptions struct {
	// Pool is connected to the database, as a role that may write daybook.gauges, daybook.depths and
	// daybook.history; it stays the caller's to close. A sample takes one or two of its connections
	// for some milliseconds, every 15 seconds.
	Pool *pgxpool.Pool
	// Name names this process; default host and process id.
	Name string
	// Service is the program's name for OpenTelemetry, unless OTEL_SERVICE_NAME gives another;
	// default "daybook". Version is its version.
	Service, Version string
	// Namespace is that of the Temporal client given to Run; default "default".
	Namespace string
	// Organizations has the metrics and the history tell organizations apart, the first hundred that
	// the process meets.
	Organizations bool
	// Standby leaves sampling the queues to other processes, as long as there are any. It is for
	// programs that run no worker.
	Standby bool
	// SampleEvery is the pause between two samples of the queues; default 15 seconds. Give every
	// process the same: one that is silent for 2.7 times its own pause is replaced.
	SampleEvery time.Duration
	// Log is where what goes wrong is logged; default slog.Default().
	Log *slog.Logger
}

// Metrics are what the workers of a process tell Prometheus and OpenTelemetry collectors, and write
// to Daybook's history (docs/metrics.md). Give them to the options of each worker of the process,
// and run them beside the workers.
type Metrics struct {
	options MetricsOptions
	metrics *metrics.Metrics
}

// NewMetrics makes metrics. When the environment asks for it (OTEL_EXPORTER_OTLP_ENDPOINT and the
// other variables of OpenTelemetry), they are pushed to a collector. Close them after the workers.
func NewMetrics(ctx context.Context, o MetricsOptions) (*Metrics, error) {
	if o.Pool == nil {
		return nil, errors.New("workers: MetricsOptions.Pool is required")
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	m, err := metrics.New(ctx,
		metrics.Options{Service: o.Service, Version: o.Version, Organizations: o.Organizations, Log: o.Log})
	if err != nil {
		return nil, err
	}
	m.AddPool(o.Pool)
	return &Metrics{options: o, metrics: m}, nil
}

// Handler shows the metrics to Prometheus. It asks for no token: let only those reach it that may
// know types and error codes.
func (m *Metrics) Handler() http.Handler { return m.metrics.Handler() }

// TemporalHandler is for the options of the Temporal client (MetricsHandler), so that the metrics
// of its SDK are shown beside Daybook's.
func (m *Metrics) TemporalHandler() client.MetricsHandler { return m.metrics.Temporal() }

// Requested counts a request that a server of the process has answered. route is the one that is
// registered, not the path that was asked for; empty: there is none.
func (m *Metrics) Requested(route, method string, status int) {
	m.metrics.Requested(route, method, status)
}

// Run samples the queues, in one process of all that run it, and adds to the history every ten
// seconds, until ctx ends. End it after the workers, so that nothing that they did is missing. c is
// connected to Temporal, or is nil: then nothing is known of the workflows.
func (m *Metrics) Run(ctx context.Context, c client.Client) {
	// The name is one process's, also where containers share host names and process ids.
	s := sampler.New(sampler.Options{
		Pool: m.options.Pool, Name: processName(m.options.Name) + "/" + rand.Text()[:8], Worker: processName(m.options.Name),
		Temporal:  c,
		Namespace: m.options.Namespace,
		Standby:   m.options.Standby, Organizations: m.options.Organizations, Every: m.options.SampleEvery,
		Log: m.options.Log,
	})
	m.metrics.SetSampler(s.Gauges)
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	running.Go(func() { m.metrics.KeepHistory(ctx, m.options.Pool) })
	running.Wait()
}

// Close pushes the metrics a last time, if they are pushed.
func (m *Metrics) Close(ctx context.Context) error { return m.metrics.Close(ctx) }

// namespace is that of the Temporal client; empty: nothing is measured, and it is not known.
func (m *Metrics) namespace() string {
	if m == nil {
		return ""
	}
	return cmp.Or(m.options.Namespace, client.DefaultNamespace)
}

// version is that of the program; empty: it does not say which it has.
func (m *Metrics) version() string {
	if m == nil {
		return ""
	}
	return m.options.Version
}

// sink is told of what workers do; nil: it is not measured.
func (m *Metrics) sink() events.Sink {
	if m == nil {
		return nil
	}
	return m.metrics.Sink()
}

// ruleEvaluated is told how long the rules of a document took; nil: it is not measured.
func (m *Metrics) ruleEvaluated() func(time.Duration) {
	if m == nil {
		return nil
	}
	return m.metrics.RuleEvaluated
}

package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.temporal.io/sdk/client"
	temporal "go.temporal.io/sdk/contrib/opentelemetry"

	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// Options say what is told. The zero value of each field is its default.
type Options struct {
	// Service names the program, unless OTEL_SERVICE_NAME does; default "daybook". Version is its
	// version.
	Service, Version string
	// Organizations are kept apart, up to a bound.
	Organizations bool
	// Log is told of what cannot be pushed; default slog.Default().
	Log *slog.Logger
}

// Metrics are those of this process. They are safe for concurrent use.
type Metrics struct {
	recorder  *recorder
	published published
	registry  *prometheus.Registry
	provider  *sdk.MeterProvider
	began     time.Time
	log       *slog.Logger
	// doubt is what may have been added to the history, or not; nil: nothing. It belongs to the
	// goroutine that keeps the history.
	doubt *doubtful

	mu    sync.Mutex
	pools []*pgxpool.Pool
	// sample returns the gauges, if this process publishes them.
	sample atomic.Pointer[func() (figures.Gauges, bool)]
}

// New returns metrics that Handler shows, and that are pushed when the environment asks for it
// (OTEL_METRICS_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT). Close them.
func New(ctx context.Context, o Options) (*Metrics, error) {
	m := &Metrics{
		recorder: newRecorder(o.Organizations), registry: prometheus.NewRegistry(), began: time.Now(),
		log: cmp.Or(o.Log, slog.Default()),
	}
	m.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	about, err := aboutProcess(ctx, o.Service, o.Version)
	if err != nil {
		return nil, err
	}
	shown, err := exporter.New(exporter.WithRegisterer(m.registry), exporter.WithProducer(m), exporter.WithoutScopeInfo(),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	options := []sdk.Option{sdk.WithResource(about), sdk.WithReader(shown), sdk.WithView(temporalBuckets)}
	pushed, err := m.pushing(ctx)
	if err != nil {
		return nil, err
	}
	if pushed != nil {
		options = append(options, sdk.WithReader(pushed))
	}
	m.provider = sdk.NewMeterProvider(options...)
	return m, nil
}

// temporalBuckets gives the histograms of Temporal's SDK buckets for seconds.
var temporalBuckets = sdk.NewView(
	sdk.Instrument{Name: "temporal_*", Kind: sdk.InstrumentKindHistogram},
	sdk.Stream{Aggregation: sdk.AggregationExplicitBucketHistogram{Boundaries: figures.Bounds()}},
)

// Sink is to be told of what workers do.
func (m *Metrics) Sink() events.Sink { return m.recorder }

// RuleEvaluated is to be told how long the rules of a document took.
func (m *Metrics) RuleEvaluated(took time.Duration) { m.recorder.observeRules(took) }

// Requested is to be told of a request that was answered: its route as it is registered, empty when
// there is none.
func (m *Metrics) Requested(route, method string, status int) {
	if !slices.Contains([]string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions,
	}, method) {
		method = other
	}
	m.recorder.observeRequest(route, method, status)
}

// Temporal is for the options of a Temporal client, so that what its SDK measures is among the
// metrics.
func (m *Metrics) Temporal() client.MetricsHandler {
	return temporal.NewMetricsHandler(temporal.MetricsHandlerOptions{
		Meter: m.provider.Meter("temporal-sdk-go"), UseMonotonicCounters: true,
		OnError: func(err error) { m.log.Warn("a metric of Temporal's SDK cannot be kept", "error", err) },
	})
}

// AddPool has the connections of a pool counted.
func (m *Metrics) AddPool(pool *pgxpool.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = append(m.pools, pool)
}

// SetSampler says where the gauges come from: from sample, as long as it says that this process
// publishes them.
func (m *Metrics) SetSampler(sample func() (figures.Gauges, bool)) { m.sample.Store(&sample) }

// Handler shows all metrics to Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
	})
}

// Produce implements metric.Producer: it is called for each scrape and each push.
func (m *Metrics) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	p := newPoints(m.began)
	if sample := m.sample.Load(); sample != nil {
		g, publishes := (*sample)()
		m.published.write(p, g, publishes)
	}
	m.recorder.write(p)
	m.writePools(p)
	return []metricdata.ScopeMetrics{p.scope()}, nil
}

func (m *Metrics) writePools(p *points) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pools) == 0 {
		return
	}
	var used, idle, most float64
	for _, pool := range m.pools {
		s := pool.Stat()
		used, idle, most = used+float64(s.AcquiredConns()), idle+float64(s.IdleConns()), most+float64(s.MaxConns())
	}
	p.gauge(poolConnections, used, "used")
	p.gauge(poolConnections, idle, "idle")
	p.gauge(poolConnections, most, "max")
}

// Close pushes once more, if metrics are pushed, and ends that.
func (m *Metrics) Close(ctx context.Context) error {
	err := m.provider.Shutdown(ctx)
	if errors.Is(err, sdk.ErrReaderShutdown) {
		return nil
	}
	return err
}

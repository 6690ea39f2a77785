package metrics

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// points are the data of one scrape or one push, metric by metric.
type points struct {
	began, now time.Time
	counters   map[string]*metricdata.Sum[int64]
	gauges     map[string]*metricdata.Gauge[float64]
	histograms map[string]*metricdata.Histogram[float64]
}

func newPoints(began time.Time) *points {
	return &points{
		began: began, now: time.Now(),
		counters: map[string]*metricdata.Sum[int64]{}, gauges: map[string]*metricdata.Gauge[float64]{},
		histograms: map[string]*metricdata.Histogram[float64]{},
	}
}

// definition finds a metric by its name.
var definition = func() map[string]Definition {
	all := map[string]Definition{}
	for _, d := range definitions {
		all[d.Name] = d
	}
	return all
}()

// attributes are the labels of a metric with their values, in the order of its definition.
func attributes(name string, values []string) attribute.Set {
	labels := definition[name].Labels
	pairs := make([]attribute.KeyValue, len(labels))
	for i, label := range labels {
		pairs[i] = attribute.String(label, values[i])
	}
	return attribute.NewSet(pairs...)
}

func (p *points) count(name string, n uint64, values ...string) {
	s := p.counters[name]
	if s == nil {
		s = &metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
		p.counters[name] = s
	}
	s.DataPoints = append(s.DataPoints,
		metricdata.DataPoint[int64]{Attributes: attributes(name, values), StartTime: p.began, Time: p.now, Value: int64(n)})
}

func (p *points) gauge(name string, v float64, values ...string) {
	g := p.gauges[name]
	if g == nil {
		g = &metricdata.Gauge[float64]{}
		p.gauges[name] = g
	}
	g.DataPoints = append(g.DataPoints,
		metricdata.DataPoint[float64]{Attributes: attributes(name, values), Time: p.now, Value: v})
}

func (p *points) distribution(name string, h *histogram, values ...string) {
	of := p.histograms[name]
	if of == nil {
		of = &metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		p.histograms[name] = of
	}
	of.DataPoints = append(of.DataPoints, metricdata.HistogramDataPoint[float64]{
		Attributes: attributes(name, values), StartTime: p.began, Time: p.now, Count: h.count, Sum: h.sum, Bounds: h.bounds,
		BucketCounts: slices.Clone(h.buckets),
	})
}

// scope is all of it, in the order of the contract.
func (p *points) scope() metricdata.ScopeMetrics {
	s := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: "github.com/daybook-dev/daybook"}}
	for _, d := range definitions {
		m := metricdata.Metrics{Name: d.Name, Description: d.Help, Unit: d.Unit}
		if c := p.counters[d.Name]; c != nil {
			m.Data = *c
		}
		if g := p.gauges[d.Name]; g != nil {
			m.Data = *g
		}
		if h := p.histograms[d.Name]; h != nil {
			m.Data = *h
		}
		if m.Data != nil {
			s.Metrics = append(s.Metrics, m)
		}
	}
	return s
}

package metrics

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
)

// aboutProcess is what tells this process from others: OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES, or the program's name and version.
func aboutProcess(ctx context.Context, service, version string) (*resource.Resource, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", cmp.Or(service, "daybook")),
			attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: want name=value,name=value: %w", err)
	}
	return about, nil
}

// pushing returns a reader that pushes metrics to a collector as OpenTelemetry's variables say;
// nil: they do not ask for it. The reader and the exporter read the variables for the address, the
// headers, certificates, the timeout and the interval themselves.
func (m *Metrics) pushing(ctx context.Context) (sdk.Reader, error) {
	if !pushAsked() {
		return nil, nil //nolint:nilnil // nothing is pushed
	}
	var to sdk.Exporter
	var err error
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"),
		"http/protobuf"); protocol {
	case "http/protobuf":
		to, err = otlpmetrichttp.New(ctx)
	case "grpc":
		to, err = otlpmetricgrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: want http/protobuf or grpc", protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("set up pushing metrics by OTLP: %w", err)
	}
	return sdk.NewPeriodicReader(&telling{Exporter: to, log: m.log}, sdk.WithProducer(m)), nil
}

// pushAsked reads whether metrics are pushed: OTEL_METRICS_EXPORTER names otlp or, when it names
// nothing, there is an endpoint.
func pushAsked() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if named := os.Getenv("OTEL_METRICS_EXPORTER"); named != "" {
		return slices.Contains(strings.Split(named, ","), "otlp")
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") != ""
}

// telling logs that metrics cannot be pushed, once until they can again.
type telling struct {
	sdk.Exporter
	log    *slog.Logger
	failed atomic.Bool
}

// Export implements metric.Exporter.
func (t *telling) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	err := t.Exporter.Export(ctx, data)
	if failed := err != nil; t.failed.Swap(failed) != failed {
		if failed {
			t.log.Warn("metrics cannot be pushed; trying again", "error", err)
		} else {
			t.log.Info("metrics are pushed again")
		}
	}
	return nil
}

// Package otlp sends the spans of package workers by OTLP, as OpenTelemetry's environment variables
// say. It links OpenTelemetry's SDK, which programs that embed Daybook bring themselves.
package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/semconv/v1.37.0"

	"github.com/daybook-dev/daybook/workers"
)

// The variables that say whether, and how, spans are sent. The exporter and the SDK read others
// besides: addresses, headers, certificates, sampler, batches.
const (
	variableDisabled      = "OTEL_SDK_DISABLED"
	variableExporter      = "OTEL_TRACES_EXPORTER"
	variableEndpoint      = "OTEL_EXPORTER_OTLP_ENDPOINT"
	variableTraceEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	variableProtocol      = "OTEL_EXPORTER_OTLP_PROTOCOL"
	variableTraceProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

// Asked reports whether the environment asks for spans: it names where to send them, or the
// exporter otlp.
func Asked() bool {
	if strings.EqualFold(os.Getenv(variableDisabled), "true") {
		return false
	}
	switch os.Getenv(variableExporter) {
	case "":
		return os.Getenv(variableEndpoint) != "" || os.Getenv(variableTraceEndpoint) != ""
	case "none":
		return false
	}
	return true
}

// started: this process sends spans already, of its first service.
var started atomic.Bool

// stopTimeout is how long spans are waited for that were not sent yet.
const stopTimeout = 5 * time.Second

// Start sends spans from now on, if the environment asks for them, under the name of a service
// unless OTEL_SERVICE_NAME says another. stop sends what is left; it is never nil. An error says
// which variable is wrong.
func Start(ctx context.Context, service, version string, log *slog.Logger) (stop func(), err error) {
	nothing := func() {}
	if !Asked() || started.Swap(true) {
		return nothing, nil
	}
	exporter, err := newExporter(ctx)
	if err != nil {
		return nothing, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version)), resource.WithTelemetrySDK(),
		resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nothing, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces could not be sent", "error", err) }))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	workers.EnableTracing()
	log.Info("sending traces by OTLP")
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("the last traces were not sent", "error", err)
		}
	}, nil
}

func newExporter(ctx context.Context) (*otlptrace.Exporter, error) {
	if name := os.Getenv(variableExporter); name != "" && name != "otlp" {
		return nil, fmt.Errorf("%s is %q: Daybook sends traces by otlp; none sends none", variableExporter, name)
	}
	switch protocol := cmp.Or(os.Getenv(variableTraceProtocol), os.Getenv(variableProtocol), "http/protobuf"); protocol {
	case "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("%s is %q: want http/protobuf or grpc", variableProtocol, protocol)
	}
}

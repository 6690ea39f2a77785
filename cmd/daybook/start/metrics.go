package start

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/workers"
)

// metricsFlag is what --metrics-listen says in every command that has it.
const metricsFlag = "answer /metrics for Prometheus on this address, without a token, such as 127.0.0.1:9464; port 0 " +
	"is a free one (default DAYBOOK_METRICS_LISTEN, or nowhere)"

// newMetrics makes the metrics of a command. listen is where they are shown, or empty. stop ends
// that and pushes a last time.
func newMetrics(ctx context.Context, a *cli.App, o workers.MetricsOptions, listen string) (m *workers.Metrics,
	stop func(), err error,
) {
	switch a.Environment.MetricsOrganizations {
	case "1", "true":
		o.Organizations = true
	case "", "0", "false":
	default:
		return nil, nil, cli.Usagef("DAYBOOK_METRICS_ORGANIZATIONS is %q: set 1 to have metrics tell organizations "+
			"apart, or 0", a.Environment.MetricsOrganizations)
	}
	if a.Environment.MetricsSampleEvery < 0 {
		return nil, nil, cli.Usagef("DAYBOOK_METRICS_SAMPLE_EVERY is %s: want a duration such as 15s",
			a.Environment.MetricsSampleEvery)
	}
	o.Log, o.Version, o.SampleEvery = a.Log, a.Version, a.Environment.MetricsSampleEvery
	if m, err = workers.NewMetrics(ctx, o); err != nil {
		return nil, nil, cli.Usagef("%v", err)
	}
	stopShowing, err := showMetrics(ctx, a, m.Handler(), listen)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close(ctx))
	}
	return m, func() {
		stopShowing()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := m.Close(last); err != nil {
			a.Log.Warn("the last metrics were not pushed", "error", err)
		}
	}, nil
}

// runMetrics samples and keeps the history until stop is called, which is after all that is
// measured has ended.
func runMetrics(ctx context.Context, m *workers.Metrics, c client.Client) (stop func()) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { m.Run(running, c) })
	return func() {
		cancel()
		background.Wait()
	}
}

// showMetrics answers /metrics on an address until stop is called. An empty address shows them
// nowhere.
func showMetrics(ctx context.Context, a *cli.App, handler http.Handler, listen string) (stop func(), err error) {
	if listen == "" {
		return func() {}, nil
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return nil, cli.Usagef("--metrics-listen %q: want an address such as 127.0.0.1:9464", listen)
	}
	listener, err := listenOn(ctx, listen, "--metrics-listen")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends by Close
	}()
	a.Log.Info("showing metrics", "address", "http://"+listener.Addr().String()+"/metrics")
	return func() {
		_ = server.Close()
		<-ended
	}, nil
}

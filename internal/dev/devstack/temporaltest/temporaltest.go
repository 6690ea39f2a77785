// Package temporaltest gives tests a real Temporal server: one in-memory development server for all
// tests of a program.
//
// Tests keep out of each other's way by namespaces (Namespace), or, which costs nothing, by names
// (Unique) for their task queues and workflows. TestMain has to stop the server: pgtest.Main(m,
// temporaltest.Stop).
package temporaltest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
)

// EnvTemporalAddress names a server to use instead of a private one, as host:port.
const EnvTemporalAddress = "DAYBOOK_TEST_TEMPORAL_ADDRESS"

const (
	// startTimeout leaves time to build the server's program once.
	startTimeout = 15 * time.Minute
	// readyTimeout bounds how long a new namespace may take until the server knows it everywhere.
	readyTimeout = 30 * time.Second
)

var (
	mu      sync.Mutex
	current *devstack.Stack
	failure error
)

// Server is the server that the tests of this program share.
type Server struct {
	// Address is host:port of its front end.
	Address string
	// CLI is the path of the Temporal CLI; empty when the server is not this program's own.
	CLI string
}

// Shared returns the server, which the first call starts. When that fails, no later test tries
// again.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	mu.Lock()
	defer mu.Unlock()
	if current == nil && failure == nil {
		current, failure = start()
	}
	if failure != nil {
		tb.Fatalf("temporaltest: %v", failure)
	}
	return &Server{Address: current.TemporalAddress, CLI: current.TemporalCLI}
}

func start() (*devstack.Stack, error) {
	if address := os.Getenv(EnvTemporalAddress); address != "" {
		return &devstack.Stack{TemporalAddress: address}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return devstack.Start(ctx, devstack.Options{
		NoPostgres: true, NoUI: true, InMemory: true, Private: true,
		// Low enough that a test can bring a workflow to continue as new.
		DynamicConfig: []string{"limit.historyCount.suggestContinueAsNew=200"},
		Progress: func(line string) {
			if strings.Contains(line, "Building") {
				fmt.Fprintln(os.Stderr, line)
			}
		},
	})
}

// Stop stops the server, if a test started it.
func Stop() error {
	mu.Lock()
	defer mu.Unlock()
	if current == nil {
		return nil
	}
	s := current
	current, failure = nil, errors.New("the server was stopped")
	return s.Kill()
}

// Unique returns a name that no other test has, beginning with prefix.
func Unique(prefix string) string {
	return prefix + "-" + strings.ToLower(rand.Text()[:10])
}

// Client returns a client for the namespace; empty: the namespace "default". It is closed when the
// test ends.
func (s *Server) Client(tb testing.TB, namespace string) client.Client {
	tb.Helper()
	if namespace == "" {
		namespace = devstack.Namespace
	}
	c, err := client.DialContext(tb.Context(),
		client.Options{HostPort: s.Address, Namespace: namespace, Logger: quiet{tb}})
	if err != nil {
		tb.Fatalf("temporaltest: connect to %s: %v", s.Address, err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Namespace registers a namespace and waits until workflows can be started in it.
func (s *Server) Namespace(tb testing.TB) string {
	tb.Helper()
	name := Unique("test")
	c := s.Client(tb, name)
	_, err := c.WorkflowService().RegisterNamespace(tb.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		tb.Fatalf("temporaltest: register namespace %s: %v", name, err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// Listing goes through the server's cache of namespaces, as a start does; describing does not.
		_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1})
		if err == nil {
			return name
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("temporaltest: namespace %s is not ready: %v", name, err)
		case <-tick.C:
		}
	}
}

// quiet passes on warnings and errors only, and nothing once the test is over, when a late line
// would be a panic.
type quiet struct{ tb testing.TB }

var _ log.Logger = quiet{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}

func (q quiet) Warn(msg string, keyvals ...any) { q.line("WARN", msg, keyvals) }

func (q quiet) Error(msg string, keyvals ...any) { q.line("ERROR", msg, keyvals) }

func (q quiet) line(level, msg string, keyvals []any) {
	if q.tb.Context().Err() == nil {
		q.tb.Log(append([]any{level, msg}, keyvals...)...)
	}
}

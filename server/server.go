package server

import (
	"cmp"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/server/internal/console"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
	"github.com/daybook-dev/daybook/workers"
)

// ConsoleRoot is the path of the console's first page.
const ConsoleRoot = console.Root

// Options say what is served. Pool is required; the zero value of each other field is its default.
type Options struct {
	// Pool is connected to the database; it stays the caller's to close. Give it 16 connections or
	// more.
	Pool *pgxpool.Pool
	// DueJobs works due jobs for POST /api/jobs/run; nil: that answers NO_RUNNER. It stays the
	// caller's to close.
	DueJobs *workers.DueJobs
	// CheckPayload checks the payload of a type that the program knows before it is enqueued, unless
	// the request skips that; nil: only the limits of size, depth and keys are checked. Its errors
	// should wrap queue.ErrPayloadInvalid.
	CheckPayload func(jobType string, payload json.RawMessage) error
	// Encryption encrypts members of payloads that requests name, and shows to tokens with the scope
	// decrypt what jobs keep encrypted; nil: there are no keys.
	Encryption *encryption.Cipher
	// ClosingKey signs the closings that are asked for on the console, as books.CloseOptions.Key does;
	// nil: they are not signed.
	ClosingKey crypto.Signer
	// TypeName returns the name by which a job's type is registered, for a type that has other names
	// as well: Registry.TypeName of package jobs does. nil: each type has one name.
	TypeName func(jobType string) string
	// Metrics are shown at /metrics to tokens that may read all organizations, and count requests;
	// nil: there is no such address.
	Metrics *workers.Metrics
	// Temporal is how the console learns of workflows, workers and schedules.
	Temporal TemporalOptions
	// Log is where requests and failures are logged; nil: slog.Default().
	Log *slog.Logger
	// Version is the program's, which the console and the OpenAPI document show; empty: "dev".
	Version string
}

// TemporalOptions say which Temporal the console asks, and how it names it to people.
type TemporalOptions struct {
	// Client is asked for workflows, workers and schedules; nil: pages say that these are not known
	// here. It stays the caller's to close.
	Client client.Client
	// Err is why there is no client although one was wanted; nil: none was.
	Err error
	// Address is the server's, and Namespace the client's; empty: "default".
	Address, Namespace string
	// UI is the address of Temporal's own pages, such as http://localhost:8233, to which runs are
	// linked; empty: they are not.
	UI string
}

// Server is the console and the API as one handler.
type Server struct {
	handler http.Handler
	listing *listing.Listing
	log     *slog.Logger

	resuming   context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup
}

// New returns the console and the API. Bulk operations that requests begin go on beside them, also
// those that another process has left; they end with ctx or at Close, and are gone on with later.
// Close the server when it answers no more requests.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Pool == nil {
		return nil, errors.New("server: Options.Pool is required")
	}
	if _, err := models.ClosingPublicKey(o.ClosingKey); err != nil {
		return nil, fmt.Errorf("server: Options.ClosingKey: %w", err)
	}
	lists, err := listing.New(o.Pool)
	if err != nil {
		return nil, err
	}
	s := &Server{listing: lists, log: cmp.Or(o.Log, slog.Default())}
	s.resuming, s.stop = context.WithCancel(ctx)
	s.background.Go(func() { httpapi.ResumeBulk(s.resuming, o.Pool, s.log) })
	api := httpapi.Options{
		Pool: o.Pool, Listing: lists, CheckPayload: o.CheckPayload, Encryption: o.Encryption, TypeName: o.TypeName, Log: s.log, Version: o.Version,
		Console: console.New(s.consoleOptions(o)), ConsoleRoot: console.Root,
	}
	if o.DueJobs != nil {
		api.Runner = dueJobs{o.DueJobs}
	}
	if o.Metrics != nil {
		api.Metrics, api.Requested = o.Metrics.Handler(), o.Metrics.Requested
	}
	s.handler = httpapi.New(api)
	return s, nil
}

func (s *Server) consoleOptions(o Options) console.Options {
	return console.Options{
		Pool: o.Pool, Listing: s.listing, Log: s.log, Version: o.Version, CheckPayload: o.CheckPayload, TypeName: o.TypeName,
		Encryption: o.Encryption, ClosingKey: o.ClosingKey,
		Temporal: o.Temporal.Client, TemporalError: o.Temporal.Err, TemporalUI: o.Temporal.UI,
		TemporalAddress: o.Temporal.Address, TemporalNamespace: o.Temporal.Namespace,
		GoOn: func(operation string) {
			s.background.Go(func() {
				if err := store.RunBulk(s.resuming, o.Pool, operation); err != nil && s.resuming.Err() == nil {
					s.log.Warn("a bulk operation stopped; it is gone on with later", "operation", operation, "error", err)
				}
			})
		},
	}
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers requests on l until ctx ends. Then it accepts no more, waits for those that are
// being answered, 25 seconds at most, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return httpapi.Serve(ctx, l, s.handler, s.log)
}

// Close stops what goes on beside requests, and waits for it. A second call does nothing.
func (s *Server) Close() error {
	s.stop()
	s.background.Wait()
	return s.listing.Close()
}

// OpenAPI returns the OpenAPI 3.1 document of the API, as /openapi.json has it. version is the
// program's.
func OpenAPI(version string) ([]byte, error) { return httpapi.OpenAPI(version) }

// dueJobs lets the API work due jobs.
type dueJobs struct{ inner *workers.DueJobs }

// RunDue implements httpapi.Runner.
func (d dueJobs) RunDue(ctx context.Context, limit int) (httpapi.Report, error) {
	r, err := d.inner.Run(ctx, limit)
	return httpapi.Report{
		Processed: r.Completed + r.Retried + r.Rescheduled + r.Failed + r.Cancelled,
		Completed: r.Completed, Retried: r.Retried, Rescheduled: r.Rescheduled, Failed: r.Failed, Cancelled: r.Cancelled,
		Running: r.Running,
	}, err
}

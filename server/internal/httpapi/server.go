package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

const (
	// MaxBodyBytes is how long a request's body may be: twice the largest payload, which leaves room
	// for escapes and blanks in its JSON.
	MaxBodyBytes = 256 << 10

	headerTimeout = 5 * time.Second
	bodyTimeout   = 15 * time.Second
	// answerTimeout is how long an operation may take; runTimeout is after what time a run begins no
	// further job.
	answerTimeout = 30 * time.Second
	runTimeout    = 55 * time.Second
	writeTimeout  = 90 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	// drainTimeout is how long requests that are being answered may go on when the server stops.
	drainTimeout = 25 * time.Second
	pingTimeout  = 2 * time.Second
)

// Runner works due jobs.
type Runner interface {
	// RunDue works at most limit due jobs, once each, and says what became of them. When ctx ends it
	// begins no further job and returns; what runs goes on.
	RunDue(ctx context.Context, limit int) (Report, error)
}

// Report counts what a run led to, job by job.
type Report struct {
	// Processed is the sum of the others without Running.
	Processed   int
	Completed   int
	Retried     int
	Rescheduled int
	Failed      int
	Cancelled   int
	// Running counts the jobs that have begun and go on after the answer.
	Running int
}

// Options are what a server needs.
type Options struct {
	// Pool is the database's; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Listing reads on the same database; it stays the caller's to close.
	Listing *listing.Listing
	// Runner works jobs for POST /api/jobs/run; nil: that answers NO_RUNNER.
	Runner Runner
	// CheckPayload checks the payload of a type that the program knows before it is enqueued, unless
	// the caller skips that; nil: only the limits of size, depth and keys are checked. An error
	// should wrap queue.ErrPayloadInvalid.
	CheckPayload func(jobType string, payload json.RawMessage) error
	// Encryption encrypts members of payloads, and decrypts what jobs keep; nil: there are no keys.
	Encryption *encryption.Cipher
	// TypeName returns the name by which a job's type is registered, for one that has others as well;
	// nil: types have one name.
	TypeName func(jobType string) string
	// Console answers everything under ConsoleRoot, and / leads there; nil: there is no console.
	Console http.Handler
	// ConsoleRoot is the address of the console's first page, which ends in a slash.
	ConsoleRoot string
	// Metrics answers /metrics, for a token that may read all organizations; nil: there is no such
	// address.
	Metrics http.Handler
	// Requested is told of each request that was answered: the route as it is registered, empty when
	// there is none; nil: it is not.
	Requested func(route, method string, status int)
	// Log is told of each request; nil: slog.Default.
	Log *slog.Logger
	// Version is the program's, for the OpenAPI document; empty: "dev".
	Version string
}

type server struct {
	Options
	pool   *pgxpool.Pool
	log    *slog.Logger
	api    huma.API
	limits limits
	// receiving has as many places as electronic invoices are read side by side.
	receiving chan struct{}
	// trials check documents by the rules of their organizations.
	trials ledger.Trials
	// hosts are the servers of the pool's address: while two of them take writes, nothing is changed.
	hosts *hosts.Watch
}

// New returns the API as a handler.
func New(o Options) http.Handler {
	s, mux := newServer(o)
	s.plain(mux)
	s.callbacks(mux)
	s.metrics(mux)
	if o.Console != nil {
		mux.Handle(o.ConsoleRoot, o.Console)
		mux.Handle("GET /{$}", http.RedirectHandler(o.ConsoleRoot, http.StatusSeeOther))
	}
	return s.watch(routed(mux, literalPaths(s.api.OpenAPI())))
}

// OpenAPI returns the API's OpenAPI document, as /openapi.json has it. version is the program's.
func OpenAPI(version string) ([]byte, error) {
	s, _ := newServer(Options{Version: version})
	return s.document()
}

// newServer makes the API's operations.
func newServer(o Options) (*server, *http.ServeMux) {
	s := &server{
		Options: o, pool: o.Pool, log: cmp.Or(o.Log, slog.Default()), trials: ledger.NewTrials(), hosts: hosts.NewWatch(o.Pool),
		receiving: make(chan struct{}, receivedAtOnce),
	}
	s.hosts.Tell(s.log)
	mux := http.NewServeMux()
	s.api = humago.New(mux, s.config())
	s.api.UseMiddleware(s.authenticate)
	s.jobs()
	s.deadLetters()
	s.bulk()
	s.queues()
	s.keyLimits()
	s.accounting()
	s.accountingElsewhere()
	s.tasks()
	s.ledger()
	s.imports()
	s.openItems()
	s.journals()
	s.periods()
	s.statements()
	s.rates()
	s.received()
	s.stats()
	s.notifications()
	s.actions()
	s.describeCallbacks()
	return s, mux
}

// Serve answers requests on l until ctx ends; then it accepts no more, and waits for those that are
// being answered.
func Serve(ctx context.Context, l net.Listener, handler http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), servingKey{}, ctx)
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were still being answered after %s: %w", drainTimeout, err), server.Close())
	}
	if serveErr := <-ended; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// servingKey is the key of a request's context under which stands the context that ends when the
// server is asked to stop.
type servingKey struct{}

// whileServing returns a context that ends with ctx or as soon as the server is asked to stop. It
// is for long operations that can be cut short.
func whileServing(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	serving, ok := ctx.Value(servingKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	forget := context.AfterFunc(serving, cancel)
	return ctx, func() {
		forget()
		cancel()
	}
}

func (s *server) config() huma.Config {
	c := huma.DefaultConfig("Daybook", cmp.Or(s.Version, "dev"))
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Info.Description = "Enqueue, watch and operate Daybook's jobs, and read its ledger. Errors are " +
		"application/problem+json (RFC 9457) with a stable code."
	c.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearer: {
			Type: "http", Scheme: "bearer", BearerFormat: "dbk_…",
			Description: "A token of `daybook tokens create`, with the scope that the operation names.",
		},
	}
	c.Tags = []*huma.Tag{
		{Name: tagJobs, Description: "Background jobs"},
		{Name: tagAccounting, Description: "Jobs of the accounting queue, one a document"},
		{Name: tagQueues, Description: "Named queues of background jobs"},
		{Name: tagTasks, Description: "Tasks that are supervised in SQL"},
		{Name: tagLedger, Description: "Documents and what was posted of them"},
		{Name: tagOperators, Description: "What operators did"},
		{Name: tagServer, Description: "The server itself"},
	}
	// The document is served by plain, made once. Pages that load scripts from elsewhere, and links
	// in answers, are left out.
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	c.RejectUnknownQueryParameters = true
	c.Transformers = []huma.Transformer{func(ctx huma.Context, _ string, v any) (any, error) {
		if p, ok := v.(*Problem); ok {
			n := note(ctx.Context())
			p.RequestID, n.code, n.cause = n.id, p.Code, p.cause
		}
		return v, nil
	}}
	return c
}

// schemaName names a schema after its Go type, in the words of a caller: an input's body is a
// request, an output's a response.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	name = strings.Replace(name, "InputBody", "Request", 1)
	return strings.Replace(name, "OutputBody", "Response", 1)
}

const (
	bearer = "bearer"
	// Keys of an operation's metadata: the scope that it wants, how long it may take if not
	// answerTimeout, and an example of its body, for the error that a request without one gets.
	scopeKey   = "scope"
	limitKey   = "limit"
	exampleKey = "example"
	// bodyKey is how many bytes its body may have, if not MaxBodyBytes.
	bodyKey = "body"
	// actionKey names the operation in the log of actions; one without it is not in the log.
	actionKey = "action"

	tagJobs       = "jobs"
	tagAccounting = "accounting"
	tagQueues     = "queues"
	tagTasks      = "tasks"
	tagLedger     = "ledger"
	tagOperators  = "operators"
	tagServer     = "server"
)

// operation adds an operation that a token with the scope may call. statuses are those of the
// problems that it may answer with, beyond those that every operation may.
func operation[I, O any](s *server, scope tokens.Scope, op huma.Operation, handle func(context.Context, *I) (*O, error),
	statuses ...int,
) {
	limit, _ := op.Metadata[limitKey].(time.Duration)
	action, _ := op.Metadata[actionKey].(string)
	body, _ := op.Metadata[bodyKey].(int64)
	op.Metadata = map[string]any{scopeKey: scope, exampleKey: op.Metadata[exampleKey], actionKey: action}
	op.Security = []map[string][]string{{bearer: {string(scope)}}}
	op.MaxBodyBytes = cmp.Or(body, MaxBodyBytes) + 1 // huma refuses a body that reaches its limit
	op.BodyReadTimeout = bodyTimeout
	op.Description = strings.TrimSpace(fmt.Sprintf("%s\n\nScope: `%s`.", op.Description, scope))
	op.Errors = append([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
	}, statuses...)
	if op.Method == http.MethodPost || op.Method == http.MethodPut {
		op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
			http.StatusUnsupportedMediaType)
	}
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(limit, answerTimeout))
		defer cancel()
		if op.Method != http.MethodGet {
			if err := s.hosts.Check(ctx); err != nil {
				return nil, problemOf(err)
			}
		}
		ctx, end := s.recorded(ctx, action)
		out, err := handle(ctx, in)
		end(err)
		if err != nil {
			return nil, problemOf(err)
		}
		return out, nil
	})
}

// refuse answers in place of an operation.
func (s *server) refuse(ctx huma.Context, err error) {
	_, w := humago.Unwrap(ctx)
	writeProblem(w, note(ctx.Context()), problemOf(err))
}

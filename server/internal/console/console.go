package console

import (
	"cmp"
	"crypto"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// Root is the address under which every page of the console is.
const Root = "/console/"

// Options are what the console needs.
type Options struct {
	// Pool is the database's; it stays the caller's to close.
	Pool *pgxpool.Pool
	// Listing reads on the same database; it stays the caller's to close.
	Listing *listing.Listing
	// Encryption decrypts what jobs keep; nil: there are no keys.
	Encryption *encryption.Cipher
	// ClosingKey signs closings; nil: they are not signed.
	ClosingKey crypto.Signer
	// Temporal is asked for workflows, workers and schedules; nil: pages say that they are not known
	// here. It stays the caller's to close.
	Temporal client.Client
	// TemporalError is why there is no client although one was asked for; TemporalAddress names the
	// server to people.
	TemporalError   error
	TemporalAddress string
	// TemporalNamespace is the client's; empty: "default".
	TemporalNamespace string
	// TemporalUI is the address of Temporal's own pages, to which runs are linked; empty: they are
	// not.
	TemporalUI string
	// GoOn works a bulk operation to its end in the background; nil: httpapi.ResumeBulk, of this
	// process or another one, goes on with it.
	GoOn func(operation string)
	// CheckPayload checks a payload against the schema of its type before a job is edited; nil: the
	// worker alone does.
	CheckPayload func(jobType string, payload json.RawMessage) error
	// TypeName returns the name by which a job's type is registered, for one that has others as well;
	// nil: types have one name.
	TypeName func(jobType string) string
	// Log is told of what fails; nil: slog.Default.
	Log *slog.Logger
	// Version is the program's; empty: "dev".
	Version string
}

type console struct {
	Options
	log      *slog.Logger
	mux      *http.ServeMux
	patterns []string
	pages    pages
	menu     []menuGroup
	assets   string
	now      func() time.Time
	attempts throttle
	orgs     knownOrgs
	// previews has as many places as previews of rules are made side by side.
	previews chan struct{}
	health   remembered[checked]
	// hosts are the servers of the pool's address: while two of them take writes, nothing is changed.
	hosts *hosts.Watch
}

//go:embed static
var static embed.FS

// New returns the console as a handler of every address under Root.
func New(o Options) http.Handler {
	c := newConsole(o)
	return secured(c.sameOrigin(c.mux))
}

func newConsole(o Options) *console {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the same for every start
	}
	c := &console{
		Options: o, log: cmp.Or(o.Log, slog.Default()), mux: http.NewServeMux(), assets: fingerprint(files),
		now: time.Now, previews: make(chan struct{}, previewsAtOnce),
		hosts: hosts.NewWatch(o.Pool),
	}
	c.Version = cmp.Or(c.Version, "dev")
	c.pages = parsePages()
	c.session()
	c.overview()
	c.actionsPage()
	c.workers()
	c.queues()
	c.limits()
	c.organizations()
	c.schedules()
	c.tokens()
	c.jobs()
	c.accounting()
	c.tasks()
	c.deadLetters()
	c.search()
	c.ledger()

	c.menu = groupMenu(c.pages.menu)
	c.mux.Handle("GET "+Root+"static/", http.StripPrefix(Root+"static/", cached(http.FileServerFS(files))))
	c.page("GET "+Root, tokens.ScopeRead, c.unknownPage)
	return c
}

// handle adds an address; a test asks each as another organization.
func (c *console) handle(pattern string, handler http.HandlerFunc) {
	c.patterns = append(c.patterns, pattern)
	c.mux.HandleFunc(pattern, handler)
}

// fingerprint is made of the files' contents: it is part of their addresses, so that a browser
// keeps none of an older program.
func fingerprint(files fs.FS) string {
	sum := sha256.New()
	names, err := fs.Glob(files, "*")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(files, name); err != nil {
			break
		}
		_, _ = sum.Write(text) // it never fails
	}
	if err != nil {
		panic(err) // the same for every start
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// secured gives each answer the headers that keep a browser from running, framing or leaking
// anything, and each request a body of maxForm bytes at most.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		// Pages read parameters by FormValue, which takes a multipart body of any request, also of one
		// without a session, and keeps what is large in files.
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next.ServeHTTP(w, r)
	})
}

// cached lets a browser keep files of the program for as long as it asks by their fingerprint.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
		}
		next.ServeHTTP(w, r)
	})
}

package publicapi_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/publicapi"
)

// around is what a reader has around the pieces of Go on the pages: imports, and what the pieces
// call their own.
const around = `package page

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/queue/source"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"gorm.io/gorm"
)

type (
	Letter   struct{}
	Posted   struct{}
	Contract struct{ Document string }
	Provider struct{}
	Signing  struct {
		Provider Provider
		BaseURL  string
	}
	Charge  struct{ OrderID string }
	Service struct {
		Temporal client.Client
		DB       *pgxpool.Pool
	}
	greeting struct{}
	Order    struct{}
	orders   struct{ accounting.Source }
	row      struct {
		ID      int64
		OrgID   string
		Version int64
	}
)

func (Charge) JobType() string                              { return "" }
func (greeting) JobType() string                            { return "" }
func (Provider) Send(context.Context, string, string) error { return nil }
func (*Signing) store(context.Context, []byte) error        { return nil }
func build(context.Context, string, string) ([]byte, error) { return nil, nil }
func place(*testing.T, *pgxpool.Pool, Order)                {}
func post(context.Context, Letter, string) (Posted, error)  { return Posted{}, nil }
func sendWelcome(context.Context, string, string) error     { return nil }
func ShipWorkflow()                                         {}

func upload(context.Context, Charge, string) (string, error)       { return "", nil }
func book(context.Context, pgx.Tx, Charge, string) (int64, error)   { return 0, nil }
func importRows(context.Context, pgx.Tx, int64, int, int) (int, error) { return 0, nil }

var (
	c                             client.Client
	content, payload              []byte
	ctx, measuring, waiting       context.Context
	chartCSV, rulesYAML           []byte
	db                            *gorm.DB
	info                          activity.Info
	invoice                       row
	job                           *jobs.Job[Contract]
	lockPayments                  func(context.Context, pgx.Tx, []source.Key[[16]byte]) ([]source.Key[[16]byte], error)
	log                           *slog.Logger
	order, org, schema, TaskQueue string
	payment                       struct{ IBAN string }
	greet                         func(context.Context, *jobs.Job[greeting]) error
	pool                          *pgxpool.Pool
	provider                      trace.TracerProvider
	registry                      *jobs.Registry
	request                       *http.Request
	readPayments                  func(context.Context, pgx.Tx, []source.Key[[16]byte]) (map[source.Key[[16]byte]]source.Row, error)
	s                             Service
	tomorrow                      time.Time
	tx                            pgx.Tx
)
`

// TestGoOfThePages checks the types of each piece of Go in README.md and docs, but for those that
// docs/jobs.md shows of examples/welcome.
func TestGoOfThePages(t *testing.T) {
	t.Parallel()
	blocks, err := pages.Of("", "go")
	require.NoError(t, err)
	_, from, err := publicapi.Importer(t.Context(), "../../..")
	require.NoError(t, err)
	example := welcome(t)
	pieces, shown := 0, 0
	page, before := "", ""
	for _, b := range blocks {
		if strings.Contains(example, b.Text) {
			shown++
			continue
		}
		pieces++
		if b.Page != page {
			page, before = b.Page, around
		}
		declared, statements := split(b.Text)
		before += declared
		assert.Empty(t, wrong(from, before+"func _() error {\n"+statements+"\nreturn nil\n}\n"), "%s:%d", b.Page, b.Line)
	}
	assert.Greater(t, pieces, 20)
	assert.Greater(t, shown, 5)
}

// welcome is the code of examples/welcome.
func welcome(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	for _, pattern := range []string{"*.go", "*/*.go"} {
		files, err := filepath.Glob("../../../examples/welcome/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			code.Write(text)
		}
	}
	return code.String()
}

// split returns the declarations of a piece, and its statements. What a page leaves out is written
// as "…".
func split(piece string) (declared, statements string) {
	piece = regexp.MustCompile(`(?m)^\s*…$`).ReplaceAllString(strings.ReplaceAll(piece, "{…}", "{}"), "")
	declarations := regexp.MustCompile(`(?m)^(?:func|type) (?:.*\{\n(?:(?:[^}\n].*)?\n)*\}|.*)$`)
	return strings.Join(declarations.FindAllString(piece, -1), "\n") + "\n", declarations.ReplaceAllString(piece, "")
}

// wrong returns what a compiler would say of a file, but for what is not used in it.
func wrong(from types.Importer, text string) []string {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "page.go", text, 0)
	if err != nil {
		return []string{err.Error()}
	}
	var said []string
	config := types.Config{Importer: from, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || !e.Soft {
			said = append(said, err.Error())
		}
	}}
	_, _ = config.Check("page", set, []*ast.File{file}, nil)
	return said
}

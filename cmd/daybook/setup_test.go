package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// result is what a call of the command line led to.
type result struct {
	exit     int
	out, err string
}

// call executes the command line in this process.
func call(ctx context.Context, stdin string, args ...string) result {
	var out, err bytes.Buffer
	exit := run(ctx, args, strings.NewReader(stdin), &out, &err)
	return result{exit, out.String(), err.String()}
}

// bundle is a database and the command line on it.
type bundle struct {
	*pgtest.DB
	t *testing.T
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{pgtest.New(t), t}
}

// run calls a command.
func (b *bundle) run(args ...string) result {
	b.t.Helper()
	return call(b.t.Context(), "", append([]string{"--database-url", b.URL}, args...)...)
}

// ok calls a command that must succeed, and returns what it printed.
func (b *bundle) ok(args ...string) string {
	b.t.Helper()
	r := b.run(args...)
	require.Zero(b.t, r.exit, "daybook %s: %s", strings.Join(args, " "), r.err)
	return r.out
}

// json calls a command that must succeed, and decodes what it printed.
func (b *bundle) json(into any, args ...string) {
	b.t.Helper()
	require.NoError(b.t, camel.Unmarshal([]byte(b.ok(append(args, "--json")...)), into))
}

// work posts what is due, without Temporal.
func (b *bundle) work() {
	b.t.Helper()
	s := store.New(b.Pool)
	e := engine.New(s, ledger.New(nil), engine.Options{})
	defer e.Close()
	_, err := e.Process(b.t.Context(), engine.TurnRequest{
		Turn: store.Turn{ID: "test/0/1", Worker: "test"}, Batch: 100, Length: time.Minute,
	})
	require.NoError(b.t, err)
}

// sample gives the organization the sample chart and rules.
func (b *bundle) sample(org string) {
	b.t.Helper()
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", org, "--create")
	b.ok("rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", org)
}

// posted is a database with the documents that come with the program, posted but for the one that
// cannot be.
func posted(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	for _, org := range []string{"de", "es", "jp"} {
		b.sample(org)
	}
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")
	b.work()
	return b
}

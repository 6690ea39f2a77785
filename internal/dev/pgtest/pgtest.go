// Package pgtest gives each test a PostgreSQL database of its own, with Daybook's schema in it.
//
// A test program starts one private server when its first test asks for a database, and migrates
// one template database. Each test's database is a copy of that template, which takes a fraction of
// a second, and is dropped when the test ends.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		db := pgtest.New(t)
//		… db.Pool …
//	}
package pgtest

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/migrations"
)

// EnvDatabaseURL names a server to use instead of a private one, by the URL of any database on it.
// Its role must be allowed to create databases.
const EnvDatabaseURL = testdb.EnvDatabaseURL

// Patience is how long a test waits for what is to happen in the end. It only ends a test that
// hangs, on a machine however busy: what a test claims about a time has a bound of its own.
const Patience = 3 * time.Minute

// searchPath is that of each test's database, as of a database that the dev stack makes.
const searchPath = "daybook, public"

// DB is a database for one test.
type DB struct{ *testdb.Database }

// Main is the body of TestMain: it runs the tests, stops what they started, fails when a goroutine
// was leaked, and exits. stop holds further things to stop, such as temporaltest.Stop.
func Main(m *testing.M, stop ...func() error) {
	collectSeldom()
	code := m.Run()
	for _, f := range append([]func() error{testdb.Stop}, stop...) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "stop after the tests:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(linesLeft...); err != nil {
			fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// linesLeft are what toxiproxy leaves behind of a connection that is cut while bytes are on their
// way: goroutines that send on channels that are not read any more.
var linesLeft = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
}

// collectSeldom spares a fifth of the processor time of test programs, which end before they hold
// much. In the environment, because a worker would otherwise choose for itself, with a limit of
// memory that the tests of one program exceed together.
func collectSeldom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	const percent = 400
	debug.SetGCPercent(percent)
	if err := os.Setenv("GOGC", strconv.Itoa(percent)); err != nil {
		panic(err)
	}
}

// New returns a database with Daybook's schema.
func New(tb testing.TB) *DB {
	tb.Helper()
	s := shared(tb)
	template, err := s.Template("daybook", searchPath, migrations.Up)
	if err != nil {
		tb.Fatalf("pgtest: migrate the template database: %v", err)
	}
	return newDatabase(tb, s, template)
}

// NewEmpty returns a database without any schema, for tests of the migrations themselves.
func NewEmpty(tb testing.TB) *DB {
	tb.Helper()
	return newDatabase(tb, shared(tb), "template0")
}

// shared returns the server that the tests of this program share.
func shared(tb testing.TB) *testdb.Server {
	tb.Helper()
	s, err := testdb.Shared(true)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return s
}

func newDatabase(tb testing.TB, s *testdb.Server, template string) *DB {
	tb.Helper()
	db, err := s.New(tb, template, searchPath)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return &DB{db}
}

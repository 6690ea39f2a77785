package devstack

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		runHelper(dir)
	}
	// The stacks of these tests are their own.
	for _, name := range []string{EnvDatabaseURL, EnvTemporalAddress} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func startStack(t *testing.T, o Options) *Stack {
	t.Helper()
	o.Progress = func(line string) { t.Log(line) }
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { stopStack(t, s) })
	return s
}

func stopStack(t *testing.T, s *Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
}

// execSQL runs statements in the stack's database.
func execSQL(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func queryString(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var s string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&s))
	return s
}

// workDir is a directory for a stack that PostgreSQL's user may enter also when root runs the
// tests.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "daybook-devstack-test-") //nolint:usetesting // t.TempDir lies in a directory for its owner only
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, removeDir(dir)) })
	return dir
}

func TestSecondStartFindsTheData(t *testing.T) {
	t.Parallel()
	dir := workDir(t)
	first := startStack(t, Options{Dir: dir, NoUI: true})
	execSQL(t, first.DatabaseURL, `CREATE SCHEMA daybook; CREATE TABLE daybook.kept AS SELECT 'data' AS what`)
	registerNamespace(t, first.TemporalAddress, "kept")
	stopStack(t, first)

	second := startStack(t, Options{Dir: dir, NoUI: true})
	require.Equal(t, "data", queryString(t, second.DatabaseURL, `SELECT what FROM kept`), "found through the search path")
	require.Contains(t, namespaces(t, second.TemporalAddress), "kept")
}

func TestDurableUnlessAskedOtherwise(t *testing.T) {
	t.Parallel()
	const q = `SELECT current_setting('fsync') || ' ' || current_setting('synchronous_commit') || ' ' || current_setting('full_page_writes')`
	durable := startStack(t, Options{NoTemporal: true})
	require.Equal(t, "on on on", queryString(t, durable.DatabaseURL, q))
	fast := startStack(t, Options{NoTemporal: true, FastAndUnsafe: true})
	require.Equal(t, "off off off", queryString(t, fast.DatabaseURL, q))
}

func TestServersForTestsAreInMemory(t *testing.T) {
	t.Setenv("TMPDIR", "")
	if temporaryParent() == "" {
		t.Skip("this system has no room in memory")
	}
	fast := startStack(t, Options{NoTemporal: true, FastAndUnsafe: true})
	require.Equal(t, temporaryParent(), filepath.Dir(fast.Dir))
	durable := startStack(t, Options{NoTemporal: true})
	require.Equal(t, os.TempDir(), filepath.Dir(durable.Dir))
	t.Setenv("TMPDIR", workDir(t))
	require.Empty(t, temporaryParent(), "a directory that the user names is used")
}

func TestPostgresSettingsComeLast(t *testing.T) {
	t.Parallel()
	s := startStack(t, Options{
		NoTemporal: true, FastAndUnsafe: true,
		PostgresSettings: []string{"track_commit_timestamp=on", "shared_buffers=32MB"},
	})
	require.Equal(t, "on 32MB",
		queryString(t, s.DatabaseURL,
			`SELECT current_setting('track_commit_timestamp') || ' ' || current_setting('shared_buffers')`))
}

func TestStopFreesPortsAndRemovesATemporaryDirectory(t *testing.T) {
	t.Parallel()
	s := startStack(t, Options{InMemory: true, FastAndUnsafe: true})
	require.NotEmpty(t, s.TemporalUI)
	config, err := pgx.ParseConfig(s.DatabaseURL)
	require.NoError(t, err)
	stopStack(t, s)
	stopStack(t, s)

	ports, err := choosePorts(t.Context(), int(config.Port), portOf(t, s.TemporalAddress),
		portOf(t, strings.TrimPrefix(s.TemporalUI, "http://")))
	require.NoError(t, err)
	require.Len(t, ports, 3)
	require.NoDirExists(t, s.Dir)
}

func TestNamedPorts(t *testing.T) {
	t.Parallel()
	ports, err := choosePorts(t.Context(), 0, 0, 0)
	require.NoError(t, err)
	s := startStack(t, Options{
		InMemory: true, FastAndUnsafe: true, PostgresPort: ports[0], TemporalPort: ports[1], UIPort: ports[2],
	})
	require.Contains(t, s.DatabaseURL, address(ports[0]))
	require.Equal(t, address(ports[1]), s.TemporalAddress)
	require.Equal(t, "http://"+address(ports[2]), s.TemporalUI)
}

func TestTakenPort(t *testing.T) {
	t.Parallel()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", address(0))
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = Start(t.Context(),
		Options{NoTemporal: true, FastAndUnsafe: true, PostgresPort: portOf(t, l.Addr().String())})
	require.ErrorIs(t, err, ErrPortTaken)
}

func TestOneStackADirectoryAndTwoSideBySide(t *testing.T) {
	t.Parallel()
	dir := workDir(t)
	first := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	_, err := Start(t.Context(), Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, dir)

	other := startStack(t, Options{Dir: workDir(t), NoTemporal: true, FastAndUnsafe: true})
	require.NotEqual(t, first.DatabaseURL, other.DatabaseURL)
	require.Equal(t, "daybook", queryString(t, first.DatabaseURL, `SELECT current_user`))
	require.Equal(t, "daybook", queryString(t, other.DatabaseURL, `SELECT current_user`))
}

func TestStartAfterACrash(t *testing.T) {
	t.Parallel()
	dir := workDir(t)
	first := startStack(t, Options{Dir: dir, NoTemporal: true})
	execSQL(t, first.DatabaseURL, `CREATE TABLE kept AS SELECT 'data' AS what`)
	require.NoError(t, first.Kill())
	// A crash of the machine leaves the file with a process id that may be any program's now.
	stale := filepath.Join(dir, postgresName, "data", "postmaster.pid")
	require.NoError(t, os.WriteFile(stale, []byte("1\n"), 0o600))

	second := startStack(t, Options{Dir: dir, NoTemporal: true})
	require.Equal(t, "data", queryString(t, second.DatabaseURL, `SELECT what FROM kept`))
}

func TestDirectoryThatPostgresMayNotEnter(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root runs PostgreSQL as another user")
	}
	parent := workDir(t)
	require.NoError(t, os.Chmod(parent, 0o700))
	dir := filepath.Join(parent, "below")
	t.Cleanup(func() { require.NoError(t, removeDir(dir)) })
	first := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	execSQL(t, first.DatabaseURL, `CREATE TABLE kept AS SELECT 'data' AS what`)
	stopStack(t, first)
	second := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	require.Equal(t, "data", queryString(t, second.DatabaseURL, `SELECT what FROM kept`))
}

func TestStartAfterOneThatWasKilledBeforeTheDataWasComplete(t *testing.T) {
	t.Parallel()
	dir := workDir(t)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, postgresName, dataName+".partial", "base"), 0o700))
	s := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	require.Equal(t, "daybook", queryString(t, s.DatabaseURL, `SELECT current_user`))
}

func TestDataKeepsItsUser(t *testing.T) {
	t.Parallel()
	if !isRoot() {
		t.Skip("only root runs PostgreSQL as another user")
	}
	dir := workDir(t)
	first := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	stopStack(t, first)
	// As if the first start had found no user postgres.
	home := filepath.Join(dir, postgresName)
	require.NoError(t, filepath.WalkDir(home, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, 65534, 65534))
	}))
	second := startStack(t, Options{Dir: dir, NoTemporal: true, FastAndUnsafe: true})
	require.Equal(t, "daybook", queryString(t, second.DatabaseURL, `SELECT current_user`))
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Options{InMemory: true, FastAndUnsafe: true})
	require.ErrorIs(t, err, context.Canceled)
}

func TestDynamicConfigMustBeAPair(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{NoPostgres: true, DynamicConfig: []string{"nonsense"}})
	require.ErrorContains(t, err, "key=value")
}

// This test and the next set environment variables, so they do not run beside others.
func TestServersThatTheEnvironmentNames(t *testing.T) {
	t.Setenv(EnvDatabaseURL, "postgres://elsewhere/daybook")
	t.Setenv(EnvTemporalAddress, "elsewhere:7233")
	s, err := Start(t.Context(), Options{})
	require.NoError(t, err)
	require.Equal(t, "postgres://elsewhere/daybook", s.DatabaseURL)
	require.Equal(t, "elsewhere:7233", s.TemporalAddress)
	require.Empty(t, s.Dir, "nothing is started")
	stopStack(t, s)
}

func TestPrivateStackIgnoresTheEnvironment(t *testing.T) {
	t.Setenv(EnvDatabaseURL, "postgres://elsewhere/daybook")
	s := startStack(t, Options{Private: true, NoTemporal: true, FastAndUnsafe: true})
	require.NotContains(t, s.DatabaseURL, "elsewhere")
}

func TestNoPostgresNamesTheWaysOut(t *testing.T) {
	t.Parallel()
	err := noPostgres("")
	require.ErrorIs(t, err, ErrNoPostgres)
	for _, way := range []string{"apt-get install postgresql", EnvDatabaseURL, "docker compose"} {
		require.ErrorContains(t, err, way)
	}
}

func portOf(t *testing.T, hostPort string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", hostPort)
	require.NoError(t, err)
	return a.Port
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/migrations"
)

// stopTimeout bounds the end of the servers.
const stopTimeout = time.Minute

// bench is what the scenarios work with: a PostgreSQL and a Temporal server of their own, and the
// program under test.
type bench struct {
	options
	log io.Writer
	dir string
	// daybook is the path of the program, built from the checkout.
	daybook  string
	stack    *devstack.Stack
	temporal client.Client
	// admin is connected to a database that nothing else uses, as the superuser.
	admin *pgxpool.Pool
	// counted numbers databases, workers and workflow runs.
	counted int

	nodeOnce sync.Once
	node     *nodePeers
	// noNode is why the peers that run on node cannot be run here.
	noNode string
}

// newBench starts the servers, with the durability that PostgreSQL has by default, builds the
// program, and makes the databases that each run's database is copied from.
func newBench(ctx context.Context, o options, log io.Writer) (_ *bench, err error) {
	b := &bench{options: o, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "daybook-bench-"); err != nil {
		return nil, err
	}
	b.say("Building daybook.")
	b.daybook = filepath.Join(b.dir, "daybook")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.daybook, "./cmd/daybook")
	build.Dir = o.root
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build daybook: %w\n%s", err, output)
	}
	b.stack, err = devstack.Start(ctx,
		devstack.Options{
			Private: true, NoUI: true, PostgresSettings: o.postgresSettings(),
			Progress: func(line string) { b.say("%s", line) },
		})
	if err != nil {
		return nil, err
	}
	adminURL, err := onDatabase(b.stack.AdminURL, "postgres")
	if err != nil {
		return nil, err
	}
	if b.admin, err = openPool(ctx, adminURL, 4); err != nil {
		return nil, err
	}
	if err := b.prepareStatements(ctx); err != nil {
		return nil, err
	}
	b.temporal, err = client.DialContext(ctx,
		client.Options{HostPort: b.stack.TemporalAddress, Namespace: devstack.Namespace, Logger: silent{}})
	if err != nil {
		return nil, err
	}
	return b, b.makeTemplates(ctx)
}

// postgresSettings are those that PostgreSQL does not have by default. A commit's time costs it
// next to nothing, and tells when a job was completed.
func (o options) postgresSettings() []string {
	set := []string{"track_commit_timestamp=on"}
	if o.statements {
		set = append(set, "shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all",
			"pg_stat_statements.max=10000")
	}
	return set
}

// stop ends what newBench started.
func (b *bench) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if b.temporal != nil {
		b.temporal.Close()
	}
	if b.admin != nil {
		b.admin.Close()
	}
	var err error
	if b.stack != nil {
		err = b.stack.Stop(ctx)
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

// makeTemplates makes one database for each program, with its schema and nothing in it.
func (b *bench) makeTemplates(ctx context.Context) error {
	for template, migrate := range map[string]func(context.Context, string) error{
		daybookTemplate: migrations.Up, riverTemplate: migrateRiver, dbosTemplate: migrateDBOS, byHandTemplate: migrateByHand,
	} {
		address, err := b.createDatabase(ctx, template, "template0")
		if err != nil {
			return err
		}
		if err := migrate(ctx, address); err != nil {
			return fmt.Errorf("prepare database %s: %w", template, err)
		}
	}
	return nil
}

// peer is a peer's measurement, unless peers are left out.
func (b *bench) peer(m measurement) measurement {
	if b.alone {
		return nil
	}
	return m
}

// wanted says whether the command line wants a part of a scenario.
func (b *bench) wanted(part string) bool { return strings.Contains(part, b.part) }

// fast are the settings where a scenario wants throughput and does not look for the best ones
// itself.
func (b *bench) fast() settings {
	return settings{cmp.Or(b.best.batch, bestSettings.batch), cmp.Or(b.best.lanes, bestSettings.lanes)}
}

// count returns the next of b's numbers.
func (b *bench) count() int {
	b.counted++
	return b.counted
}

// unique is a name for a worker or a workflow run that no other has.
func (b *bench) unique() string { return fmt.Sprintf("bench-%d-%d", os.Getpid(), b.count()) }

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.log, format+"\n", args...) // an error here cannot be told either
}

// sized chooses how many documents a scenario works: the command line's number, or that of a full
// or a short run.
func (b *bench) sized(full, smoke int) int { return chooseNumber(b.size, full, smoke, b.smoke) }

// sampled is the same for samples.
func (b *bench) sampled(full, smoke int) int { return chooseNumber(b.samples, full, smoke, b.smoke) }

// repeated is the same for runs.
func (b *bench) repeated(full int) int { return chooseNumber(b.runs, full, 1, b.smoke) }

// lasting is the same for times, which the command line does not change.
func (b *bench) lasting(full, smoke time.Duration) time.Duration {
	if b.smoke {
		return smoke
	}
	return full
}

func chooseNumber(said, full, short int, smoke bool) int {
	switch {
	case said > 0:
		return said
	case smoke:
		return short
	}
	return full
}

// onDatabase is the address of another database on the same server.
func onDatabase(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

func openPool(ctx context.Context, address string, conns int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(conns)
	return pgxpool.NewWithConfig(ctx, config)
}

// silent keeps the Temporal client's messages out of the output.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// inTx runs f in a transaction that is committed.
func inTx(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, pool, f)
}

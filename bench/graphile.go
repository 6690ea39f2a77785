package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

// graphileName is the peer's name in the table.
const graphileName = "graphile-worker"

// graphileSource is the program that runs graphile-worker, with its pinned dependencies.
//
//go:embed graphile/package.json graphile/package-lock.json graphile/worker.mjs
var graphileSource embed.FS

// graphile is graphile-worker as it can be run here.
type graphile struct {
	node string
	// dir holds worker.mjs and its dependencies.
	dir string
	// version is graphile-worker's, nodeVersion that of node.
	version, nodeVersion string
}

// graphileSettings are how the two processes of graphile-worker work.
type graphileSettings struct {
	// concurrency is how many jobs a process works side by side.
	concurrency int
	// localQueue is how many jobs a process fetches at a time.
	localQueue int
	// completeDelay is how long completions gather, in milliseconds.
	completeDelay int
}

// graphileVariants are what graphile-worker's best settings are looked for among. Its documentation
// measures with the first.
var graphileVariants = []graphileSettings{{24, 500, 0}, {24, 1_000, 0}, {24, 500, 5}, {24, 100, 0}, {100, 2_000, 5}}

func (s graphileSettings) String() string {
	return fmt.Sprintf("two processes, concurrency %d, localQueue.size %d, completeJobBatchDelay %d", s.concurrency,
		s.localQueue, s.completeDelay)
}

// graphileProcesses is how many processes work the queue.
const graphileProcesses = 2

// useGraphile returns graphile-worker, ready to run, or why it cannot be run here. It is looked for
// once.
func (b *bench) useGraphile(ctx context.Context) (*graphile, string) {
	if b.alone {
		return nil, "peers are left out"
	}
	b.graphileOnce.Do(func() {
		var err error
		if b.graphile, err = b.findGraphile(ctx); err != nil {
			b.noGraphile = err.Error()
		}
	})
	if b.noGraphile != "" {
		b.say("  %s: %s", graphileName, b.noGraphile)
	}
	return b.graphile, b.noGraphile
}

func (b *bench) findGraphile(ctx context.Context) (_ *graphile, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: row left out", err)
		}
	}()
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node not found")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, errors.New("npm not found")
	}
	g := &graphile{node: node}
	if g.dir, err = b.installGraphile(ctx, npm); err != nil {
		return nil, err
	}
	// The node that is pinned beside graphile-worker is there on most platforms.
	pinned, err := filepath.Glob(filepath.Join(g.dir, "node_modules", "node-*-*", "bin", "node"))
	if err == nil && len(pinned) == 1 {
		g.node = pinned[0]
	}
	output, err := exec.CommandContext(ctx, g.node, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for node's version: %w", err)
	}
	g.nodeVersion = strings.TrimSpace(string(output))
	if g.version, err = g.installedVersion(); err != nil {
		return nil, err
	}
	address, err := b.createDatabase(ctx, graphileTemplate, "template0")
	if err != nil {
		return nil, err
	}
	if output, err := g.command(ctx, address, graphileSettings{}, true).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make graphile-worker's schema: %w: %s", err, output)
	}
	return g, nil
}

// installGraphile installs the pinned packages into the user's cache, once for each text of the
// lock file, and returns the folder.
func (b *bench) installGraphile(ctx context.Context, npm string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("look for the user's cache: %w", err)
	}
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json", "worker.mjs"} {
		if files[name], err = graphileSource.ReadFile("graphile/" + name); err != nil {
			return "", err
		}
		_, _ = sum.Write(files[name]) // a hash takes everything
	}
	dir := filepath.Join(cache, "daybook", "graphile-"+hex.EncodeToString(sum.Sum(nil))[:12])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.say("  Installing graphile-worker into %s.", dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // a cache of public packages
		return "", err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "graphile-partial-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(partial) }() // it is renamed when all went well
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(partial, name), text, 0o600); err != nil {
			return "", err
		}
	}
	install := exec.CommandContext(ctx, npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = partial
	if output, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install graphile-worker by npm ci: %w: %s", err, output)
	}
	// Another process may have been faster.
	if err := os.Rename(partial, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// installedVersion reads graphile-worker's version.
func (g *graphile) installedVersion() (string, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, "node_modules", "graphile-worker", "package.json"))
	if err != nil {
		return "", err
	}
	var p struct {
		Version string `json:"version"`
	}
	err = json.Unmarshal(text, &p)
	return p.Version, err
}

// graphilePinned is the version of a package that graphile/package.json names.
func graphilePinned(name string) string {
	text, err := graphileSource.ReadFile("graphile/package.json")
	if err != nil {
		return ""
	}
	var p struct {
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return ""
	}
	return cmp.Or(p.Dependencies[name], p.OptionalDependencies[name])
}

// command is a process of worker.mjs.
func (g *graphile) command(ctx context.Context, address string, s graphileSettings, migrate bool) *exec.Cmd {
	config, _ := json.Marshal(map[string]any{ //nolint:errchkjson // texts, numbers and a boolean
		"databaseUrl": address, "concurrency": s.concurrency, "localQueue": s.localQueue, "completeDelay": s.completeDelay,
		"migrate": migrate,
	})
	cmd := exec.CommandContext(ctx, g.node, "worker.mjs")
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "NODE_ENV=production", "NO_LOG_SUCCESS=1", "BENCH_GRAPHILE="+string(config))
	return cmd
}

// graphileRate is jobs/s of graphile-worker, of jobs that do nothing, on a database of its own. Its
// clock runs from when both processes, which are started and loaded, are told to work until no job
// is left: it deletes what is completed.
func (b *bench) graphileRate(ctx context.Context, g *graphile, s graphileSettings, n int) (rate float64, err error) {
	err = b.withDatabase(ctx, graphileTemplate, func(d *database) error {
		const add = `
SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
    SELECT ROW('noop', json_build_object('number', i), NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec FROM generate_series($1::bigint, $2::bigint) i))`
		for begin := 0; begin < n; begin += fillBatch {
			if _, err := d.pool.Exec(ctx, add, begin, min(begin+fillBatch, n)-1); err != nil {
				return fmt.Errorf("add jobs: %w", err)
			}
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		took, err := b.drainGraphile(ctx, g, d, s, n)
		rate = perSecond(n, took)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s, %s: %w", graphileName, s, err)
	}
	b.say("  %s, jobs that do nothing, %s: %s jobs/s", graphileName, s, report.Figure(rate))
	return rate, nil
}

func (b *bench) drainGraphile(ctx context.Context, g *graphile, d *database, s graphileSettings,
	n int,
) (took time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	processes := make([]*graphileProcess, graphileProcesses)
	for i := range processes {
		p, err := b.startGraphile(g.command(context.WithoutCancel(ctx), d.url, s, false), cancel)
		if err != nil {
			return 0, err
		}
		processes[i] = p
		defer func() { err = errors.Join(err, p.stop()) }()
	}
	for _, p := range processes {
		select {
		case <-p.ready:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	done := func() (all int64) {
		for _, p := range processes {
			all += p.done.Load()
		}
		return all
	}
	began := time.Now()
	for _, p := range processes {
		if err := p.begin(); err != nil {
			return 0, err
		}
	}
	err = await(ctx, time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		all := done()
		if all < int64(n) {
			return false, all, nil
		}
		left, err := one[bool](ctx, d.pool, `SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)`)
		return !left, all, err
	})
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	took = time.Since(began)
	if all := done(); all != int64(n) {
		return 0, fmt.Errorf("%d jobs were done %d times", n, all)
	}
	return took, nil
}

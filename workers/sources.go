package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
)

// checkNames refuses sources and hooks that cannot work.
func (o AccountingOptions) checkNames() error {
	for name, source := range o.Sources {
		switch {
		case store.CheckName(name) != nil:
			return fmt.Errorf("workers: Sources: %w", store.CheckName(name))
		case name == accounting.SourceDaybook:
			return errors.New("workers: Sources: daybook is the name of daybook.documents, which every worker reads: give " +
				"your source a name of its own")
		case source == nil:
			return fmt.Errorf("workers: Sources: the source %s is nil", name)
		}
	}
	for name, hook := range o.Hooks {
		switch {
		case store.CheckName(name) != nil:
			return fmt.Errorf("workers: Hooks: %w", store.CheckName(name))
		case hook == nil:
			return fmt.Errorf("workers: Hooks: the hook %s is nil", name)
		}
	}
	return nil
}

// leftovers says what a worker leaves to others.
type leftovers struct {
	store *store.Store
	log   *slog.Logger
	can   store.Abilities
	// said is what the last line about each need said, unnamed what was said of names that are not on
	// record.
	said    map[string]int64
	unnamed string
}

// tellLimit bounds what a worker asks to say what it leaves: it works without.
const tellLimit = 30 * time.Second

// tell logs which jobs that are due this worker leaves, when that has changed, and which of its
// names no organization is on record with: that is seldom meant.
func (l *leftovers) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	left, err := l.store.Left(ctx)
	if err != nil {
		return err
	}
	now := map[string]int64{}
	for _, n := range left {
		key := n.Source + " " + strings.Join(n.Hooks, ",")
		now[key] = n.Organizations
		if l.said[key] == n.Organizations {
			continue
		}
		l.log.Warn("this worker leaves jobs that are due to other workers: it does not read their source, or lacks a "+
			"hook of theirs",
			"organizations", n.Organizations, "jobs", n.Jobs, "source", n.Source, "hooks", n.Hooks,
			"reads", l.can.Sources, "has", l.can.Hooks)
	}
	if len(l.said) > 0 && len(now) == 0 {
		l.log.Info("this worker leaves no jobs to others any more")
	}
	l.said = now
	return l.tellUnnamed(ctx)
}

func (l *leftovers) tellUnnamed(ctx context.Context) error {
	if len(l.can.Hooks) == 0 && slices.Equal(l.can.Sources, []string{accounting.SourceDaybook}) {
		return nil // a stock worker has no names of its own
	}
	sources, hooks, err := store.NamesOnRecord(ctx, l.store.Pool())
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(l.can.Sources),
		func(s string) bool { return s == accounting.SourceDaybook || slices.Contains(sources, s) })
	untold := slices.DeleteFunc(slices.Clone(l.can.Hooks), func(h string) bool { return slices.Contains(hooks, h) })
	unnamed := fmt.Sprint(missing, untold)
	if unnamed != l.unnamed && len(missing)+len(untold) > 0 {
		l.log.Warn("no organization is on record with a source or hook of this worker: it is never asked or told; set it "+
			"with `daybook organizations source` or `hooks`",
			"sources", missing, "hooks", untold)
	}
	l.unnamed = unnamed
	return nil
}

// checkSources says what is wrong with the sources of the worker. What failed because of them is
// then tried again.
func (o AccountingOptions) checkSources(ctx context.Context) error {
	n, err := ledger.BeginSources(ctx, o.Pool, o.Sources)
	switch {
	case err != nil:
		return fmt.Errorf("workers: Sources: %w", err)
	case n > 0:
		o.Log.Info("documents that failed because their source could not be read are tried again", "documents", n)
	}
	return nil
}

// abilities are what the worker reads and has.
func (o AccountingOptions) abilities() store.Abilities {
	if o.Processor == nil && o.JobProcessor == nil {
		return ledger.New(o.Sources).WithHooks(o.Hooks).Abilities()
	}
	sources := slices.Clone(o.ProcessorOptions.Sources)
	if len(sources) == 0 {
		sources = []string{accounting.SourceDaybook}
	}
	slices.Sort(sources)
	return store.Abilities{Sources: slices.Compact(sources)}
}

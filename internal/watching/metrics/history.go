package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
)

// historyEvery is the pause between two additions to the history.
const historyEvery = 10 * time.Second

// KeepHistory adds what was told to the history, every ten seconds until ctx ends, and then the
// rest. What cannot be added, for instance during an outage, is added later, at the time of then.
func (m *Metrics) KeepHistory(ctx context.Context, db HistoryDB) {
	ticker := time.NewTicker(historyEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			if err := m.AddHistory(last, db); err != nil {
				m.log.Warn("the last figures were not added to the history", "error", err)
			}
			return
		case <-ticker.C:
		}
		err := m.AddHistory(ctx, db)
		if failing != (err != nil) && ctx.Err() == nil {
			if failing = err != nil; failing {
				m.log.Warn("figures cannot be added to the history; trying again", "error", store.Advised(err), "in",
					historyEvery.String())
			} else {
				m.log.Info("figures are added to the history again")
			}
		}
	}
}

// HistoryDB is what the history is kept in: a pool.
type HistoryDB interface {
	store.Querier
	store.Beginner
}

// doubtful are figures of which it is not known whether they were added.
type doubtful struct {
	transaction string
	figures     []figures.Attempts
}

// AddHistory adds what was told since the last time. What could not be added is added the next
// time; where the commit was not answered, that is decided by what the database says of it then, so
// that nothing is added twice. One goroutine calls it.
func (m *Metrics) AddHistory(ctx context.Context, db HistoryDB) error {
	ctx, cancel := context.WithTimeout(ctx, historyEvery)
	defer cancel()
	if err := m.resolveDoubt(ctx, db); err != nil {
		return err
	}
	all := m.recorder.take()
	if len(all) == 0 {
		return nil
	}
	err := figures.AddHistory(ctx, db, all)
	if unknown, ok := errors.AsType[*figures.UnknownError](err); ok {
		m.doubt = &doubtful{unknown.Transaction, all}
	} else if err != nil {
		m.recorder.giveBack(all)
	}
	return err
}

// errInProgress: the server still commits what it has not answered, or has not noticed that its
// client has gone.
var errInProgress = errors.New("an earlier addition is still being committed")

// resolveDoubt finds out what became of an addition whose commit was not answered.
func (m *Metrics) resolveDoubt(ctx context.Context, db HistoryDB) error {
	if m.doubt == nil {
		return nil
	}
	added, ended, err := figures.Added(ctx, db, m.doubt.transaction)
	switch {
	case err != nil:
		return err
	case !ended:
		return errInProgress
	case !added:
		m.recorder.giveBack(m.doubt.figures)
	}
	m.doubt = nil
	return nil
}

package metrics

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
)

// historyEvery is the pause between two additions to the history.
const historyEvery = 10 * time.Second

// KeepHistory adds what was told to the history, every ten seconds until ctx ends, and then the rest. What cannot be added, for instance during an outage, is added
// later, at the time of then.
func (m *Metrics) KeepHistory(ctx context.Context, db store.DB) {
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
				m.log.Warn("figures cannot be added to the history; trying again", "error", err, "in", historyEvery.String())
			} else {
				m.log.Info("figures are added to the history again")
			}
		}
	}
}

// AddHistory adds what was told since the last time.
func (m *Metrics) AddHistory(ctx context.Context, db store.DB) error {
	all := m.recorder.take()
	if len(all) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyEvery)
	defer cancel()
	err := figures.AddHistory(ctx, db, all)
	if err != nil {
		m.recorder.giveBack(all)
	}
	return err
}

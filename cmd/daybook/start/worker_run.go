package start

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/workers"
)

// newWorker makes the worker of a kind of queue. release gives back what it was made with, when the
// worker is closed; nil: nothing.
type newWorker func(a *cli.App, options workers.AccountingOptions) (w *workers.Worker, release func() error, err error)

// newWorkers make the workers of every kind.
var newWorkers = []struct {
	kind string
	make newWorker
}{{"accounting", accountingWorker}, {"jobs", jobsWorker}, {"tasks", tasksWorker}}

// workQueues runs a worker of every queue until ctx ends, or one of them does.
func workQueues(ctx context.Context, a *cli.App, options workers.AccountingOptions) (err error) {
	var all []*workers.Worker
	for _, q := range newWorkers {
		w, release, failed := q.make(a, options)
		if release != nil {
			defer func() { err = errors.Join(err, release()) }()
		}
		if failed != nil {
			// a variable of the environment that no worker can work with
			if failure.Of(failed) == nil && store.Failure(failed) == nil {
				return cli.Usagef("set up the worker of the queue %s: %v", q.kind, failed)
			}
			return fmt.Errorf("set up the worker of the queue %s: %w", q.kind, failed)
		}
		defer w.Close()
		all = append(all, w)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(all))
	for _, w := range all {
		go func() {
			defer cancel()
			ended <- w.Run(ctx)
		}()
	}
	for range all {
		err = errors.Join(err, <-ended)
	}
	return err
}

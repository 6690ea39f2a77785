package start

import (
	"cmp"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/workers"
)

// accountingWorker is the worker of the accounting queue.
func accountingWorker(a *cli.App, options workers.AccountingOptions) (*workers.Worker, func() error, error) {
	options.Fleet = a.Environment.Fleet
	options.Owner = cmp.Or(a.Environment.AccountingOwner, handlers.DefaultOwner)
	w, err := workers.NewAccounting(options)
	return w, nil, err
}

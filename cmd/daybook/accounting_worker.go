package main

import (
	"cmp"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/workers"
)

// accountingWorker is the worker of the accounting queue.
func (a *app) accountingWorker(options workers.AccountingOptions) (*workers.Worker, func() error, error) {
	options.Fleet = a.environment.Fleet
	options.Owner = cmp.Or(a.environment.AccountingOwner, handlers.DefaultOwner)
	w, err := workers.NewAccounting(options)
	return w, nil, err
}

package main

import "github.com/daybook-dev/daybook/workers"

// accountingWorker is the worker of the accounting queue.
func (a *app) accountingWorker(options workers.AccountingOptions) (*workers.Worker, func() error, error) {
	w, err := workers.NewAccounting(options)
	return w, nil, err
}

package books

import (
	"github.com/daybook-dev/daybook/failure"
)

var (
	errPartlyFailed = failure.New(failure.PartlyFailed, "not everything was done")
	errOutOfBalance = failure.New(failure.OutOfBalance, "debits and credits differ")
	errNotSound     = failure.New(failure.NotSound, "the ledger is not sound")
	errNotReady     = failure.New(failure.PeriodNotReady, "the period is not ready to be closed")
	errDryRun       = failure.New(failure.Failure, "a dry run writes nothing") // ends its transactions
	errNoAccount    = failure.New(failure.AccountNotFound, "no such account")
)

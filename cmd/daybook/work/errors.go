package work

import (
	"github.com/daybook-dev/daybook/failure"
)

var (
	errFileExists = failure.New(failure.FileExists, "the file exists already")
	// errDryRun has a transaction rolled back. No command returns it.
	errDryRun = failure.New(failure.Invalid, "it was a dry run")
)

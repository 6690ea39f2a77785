package devstack

import (
	"github.com/daybook-dev/daybook/failure"
)

// ErrInUse means that another stack runs in the directory.
var ErrInUse = failure.New(failure.StackInUse, "a dev stack is already running in")

// ErrNoPostgres means that no usable PostgreSQL is installed and that it could not be installed
// either.
var ErrNoPostgres = failure.New(failure.Failure, "PostgreSQL 14 or newer is not installed")

// ErrNoTemporal means that there is no Temporal CLI and that it could not be built either.
var ErrNoTemporal = failure.New(failure.Failure, "the Temporal CLI is not installed")

// ErrPortTaken means that another program listens on a port that the options name.
var ErrPortTaken = failure.New(failure.PortTaken, "the port is taken")

package devstack

import "errors"

// ErrInUse means that another stack runs in the directory.
var ErrInUse = errors.New("a dev stack is already running in")

// ErrNoPostgres means that no usable PostgreSQL is installed and that it could not be installed either.
var ErrNoPostgres = errors.New("PostgreSQL 14 or newer is not installed")

// ErrNoTemporal means that there is no Temporal CLI and that it could not be built either.
var ErrNoTemporal = errors.New("the Temporal CLI is not installed")

// ErrPortTaken means that another program listens on a port that the options name.
var ErrPortTaken = errors.New("the port is taken")

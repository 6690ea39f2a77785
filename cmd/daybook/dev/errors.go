package dev

import (
	"github.com/daybook-dev/daybook/failure"
)

var errNotEmpty = failure.New(failure.NotEmpty, "the database is in use")

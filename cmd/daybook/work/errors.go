package work

import (
	"github.com/daybook-dev/daybook/failure"
)

var errFileExists = failure.New(failure.FileExists, "the file exists already")

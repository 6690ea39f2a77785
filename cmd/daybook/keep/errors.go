package keep

import (
	"github.com/daybook-dev/daybook/failure"
)

var errNoArchived = failure.New(failure.FileNotFound, "no such file of the archive")

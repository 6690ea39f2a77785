package look

import (
	"github.com/daybook-dev/daybook/failure"
)

var (
	errWarnings = failure.New(failure.FoundWarnings, "there are warnings")
	errCritical = failure.New(failure.FoundCritical, "work that is due is not done")
)

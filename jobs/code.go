package jobs

import (
	"fmt"

	"github.com/daybook-dev/daybook/models"
)

// MaxCodeBytes is how long an error code of a handler's own may be.
const MaxCodeBytes = 64

// allowedCode is the code of an error that was given it, and what its message begins with. Lists,
// metrics and searches have codes as they are, so that a text that is none is HANDLER_ERROR. So is
// a code that is reserved.
func allowedCode(given models.ErrorCode) (code models.ErrorCode, remark string) {
	switch {
	case models.JobCodeIsReserved(given):
		return models.CodeHandlerError, fmt.Sprintf("the code %s is Daybook's own: ", given)
	case isCode(string(given)):
		return given, ""
	}
	return models.CodeHandlerError,
		fmt.Sprintf("the code %.200q is not of 1 to %d capital letters, digits and '_': ", string(given), MaxCodeBytes)
}

func isCode(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= MaxCodeBytes
}

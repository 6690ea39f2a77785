package jobs

import (
	"fmt"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/models"
)

// MaxCodeBytes is how long an error code of a handler's own may be.
const MaxCodeBytes = 64

// codeOf returns the first code that err, or what it wraps, was given. Lists, metrics and searches have codes as they are, so that a text that is none is
// HANDLER_ERROR, and is what the error's message begins with. So is a code that is reserved.
func codeOf(err error) (code models.ErrorCode, message string) {
	code, message = givenCode(err), textOf(err)
	switch {
	case models.JobCodeIsReserved(code):
		return models.CodeHandlerError, fmt.Sprintf("the code %s is Daybook's own: %s", code, message)
	case isCode(string(code)):
		return code, message
	}
	return models.CodeHandlerError, fmt.Sprintf("the code %.200q is not of 1 to %d capital letters, digits and '_': %s", string(code), MaxCodeBytes, message)
}

func givenCode(err error) models.ErrorCode {
	for o := range outcomes(err) {
		if o.code != "" {
			return o.code
		}
	}
	return engine.CodeOf(err)
}

func isCode(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= MaxCodeBytes
}

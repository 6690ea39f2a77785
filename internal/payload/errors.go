package payload

import (
	"github.com/daybook-dev/daybook/models"
)

// Error is why a payload was refused. It is models.ErrPayloadTooLarge or models.ErrPayloadInvalid, by its code.
type Error struct {
	// Code is CodePayloadTooLarge or CodePayloadInvalid.
	Code models.ErrorCode
	// Field is the JSON pointer of what is wrong, "/lines/0/net"; empty: the payload as a whole.
	Field   string
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Field == "" {
		return "payload: " + e.Message
	}
	return "payload field " + e.Field + ": " + e.Message
}

// Unwrap returns the sentinel of the code.
func (e *Error) Unwrap() error {
	if e.Code == models.CodePayloadTooLarge {
		return models.ErrPayloadTooLarge
	}
	return models.ErrPayloadInvalid
}

func invalid(field, message string) *Error {
	return &Error{Code: models.CodePayloadInvalid, Field: field, Message: message}
}

package payload

import (
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// Error is why a payload, or the answer of a callback, was refused. It is models.ErrPayloadTooLarge
// or models.ErrPayloadInvalid, by its code.
type Error struct {
	// Code is CodePayloadTooLarge or CodePayloadInvalid.
	Code models.ErrorCode
	// Field is the JSON pointer of what is wrong, "/lines/0/net"; empty: the payload as a whole.
	Field   string
	Message string
	// Fields are all that the schema refuses, each beside its field, a missing one too; nil: it is not
	// the schema that refuses the payload.
	Fields []FieldError
	// Answer: it is the answer of a callback, for which the limits of a payload hold.
	Answer bool
}

// FieldError is what is wrong with one field, which Field names as that of Error does.
type FieldError struct{ Field, Message string }

// Error implements error.
func (e *Error) Error() string {
	text := e.what()
	if e.Field != "" {
		text += " field " + e.Field
	}
	return text + ": " + e.Says()
}

// Says is the message, and what to do where that is the same for all.
func (e *Error) Says() string {
	if e.Code == models.CodePayloadTooLarge {
		return e.Message + ": keep what is large elsewhere, and its name in the " + e.what()
	}
	return e.Message
}

func (e *Error) what() string {
	if e.Answer {
		return "answer"
	}
	return "payload"
}

// Location is the place of what is wrong in the body of a request, such as body.payload.lines.0: an
// answer is the body, and a payload a member of it.
func (e *Error) Location() string {
	whole := "body.payload"
	if e.Answer {
		whole = "body"
	}
	return whole + strings.ReplaceAll(e.Field, "/", ".")
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

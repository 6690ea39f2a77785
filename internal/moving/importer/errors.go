package importer

import (
	"fmt"

	"github.com/daybook-dev/daybook/failure"
)

var (
	// ErrNotBookable: the document is valid, but of a kind that causes no booking (an order, a
	// delivery note, a pro-forma invoice …). Skip it. The error in the chain is a *NotBookableError
	// that names the kind.
	ErrNotBookable = failure.New(failure.DocumentRefused, "not a document we book")
	// ErrInvalid: the document cannot be read or lacks something. Correct the document.
	ErrInvalid = failure.New(failure.DocumentRefused, "invalid document")
	// ErrInvalidMapping: a mapping file cannot be used. The error in the chain is a *MappingError
	// that lists the problems.
	ErrInvalidMapping = failure.New(failure.Failure, "invalid mapping")
	// ErrNoFiles: none of the named paths leads to a file of the wanted kind.
	ErrNoFiles = failure.New(failure.Failure, "no file to import")
)

// NotBookableError says what kind of document was refused. errors.Is(err, ErrNotBookable) holds for
// it.
type NotBookableError struct {
	// Schema is the document's $schema; Type its type within the schema, empty if it has none.
	Schema, Type string
}

// Error implements error.
func (e *NotBookableError) Error() string {
	if e.Type == "" {
		return fmt.Sprintf("%v: %s; skip it", ErrNotBookable, e.Schema)
	}
	return fmt.Sprintf("%v: %s of type %q; skip it", ErrNotBookable, e.Schema, e.Type)
}

// Unwrap returns ErrNotBookable.
func (e *NotBookableError) Unwrap() error { return ErrNotBookable }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

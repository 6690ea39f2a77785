package ledgerdb

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/daybook-dev/daybook/models"
)

// readContent reads daybook.documents.content, and copies what it keeps of text. A field that models.Content does not have is an error, as in an import: a misspelt
// amount would be posted as 0. So is one that is there twice, in capital and small letters.
//
// The package is encoding/json/v2 of Go 1.27, for the versions before it. It takes a third of the time of encoding/json, which was a seventh of all that a worker
// does for a document. By itself it passes over underscores and dashes in names as it does over case: _total would be posted as total, and no other reader has it so.
func readContent(text []byte) (c models.Content, err error) {
	err = json.Unmarshal(text, &c, json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true))
	if err == nil {
		return c, nil
	}
	return c, fmt.Errorf("content: %w", explainContent(err))
}

// explainContent has a text of its own for each error of a content: those of the package are not the same in each process.
func explainContent(err error) error {
	if twice, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Errorf("the field %q is there twice, in capital and small letters: remove one of them", twice.JSONPointer.LastToken())
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return err
	case errors.Is(wrong, json.ErrUnknownName):
		return fmt.Errorf("there is no field %q: correct its name, or put further values under attributes", wrong.JSONPointer.LastToken())
	}
	at := string(wrong.JSONPointer)
	if at == "" {
		at = "it"
	}
	return fmt.Errorf("%s is %s, and %s is wanted", at, found(wrong), wanted(wrong.GoType))
}

// found names what stands where something else is wanted.
func found(e *json.SemanticError) string {
	switch e.JSONKind {
	case jsontext.KindString:
		return "a text"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "a list"
	case jsontext.KindNumber:
		if len(e.JSONValue) == 0 {
			return "a number"
		}
		return string(e.JSONValue)
	default:
		return e.JSONKind.String() // true, false and null
	}
}

// wanted names what can be read as a t.
func wanted(t reflect.Type) string {
	if t == nil {
		return "another value"
	}
	switch t.Kind() {
	case reflect.Int64:
		return "a whole number that fits into 64 bits"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}

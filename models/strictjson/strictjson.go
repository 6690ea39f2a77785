// Package strictjson reads JSON that people and their programs write, in the same way wherever it
// comes from: documents in rows of daybook.documents, in an application's own tables and in
// imported files, and settings.
package strictjson

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/daybook-dev/daybook/models"
)

// Error says what is wrong and where.
type Error struct {
	// Pointer is the place, as a JSON Pointer; empty: the whole text, or a place that only the
	// message tells.
	Pointer string
	message string
	cause   error
}

// Error implements error.
func (e *Error) Error() string { return e.message }

// Unwrap returns the error of the reader, or of a type that reads its own JSON.
func (e *Error) Unwrap() error { return e.cause }

// Unmarshal reads a document, and copies what it keeps of text. A field that the value does not
// have is an error: a misspelt amount would be posted as 0. So is one whose name has capital letters,
// because the statements that read contents in the database know a field by its name alone: it would
// be posted, and state no tax, belong to no counterparty, and be taken away by an erasure. So is a
// field that is there twice, and text that is not UTF-8. The error is an *Error.
//
// The package is encoding/json/v2 of Go 1.27, for the versions before it. It takes a third of the
// time of encoding/json, which was a seventh of all that a worker does for a document. By itself it
// passes over underscores and dashes in names as it does over case: _total would be posted as
// total.
func Unmarshal(text []byte, into any) error {
	if err := json.Unmarshal(text, into, strict, json.MatchCaseInsensitiveNames(false)); err != nil {
		return explain(err, "correct its name, or put further values under attributes")
	}
	return nil
}

// UnmarshalSettings is Unmarshal for settings, which have no attributes, and whose names may be in
// capital letters. Their durations are texts such as 30s.
func UnmarshalSettings(text []byte, into any) error {
	if err := json.Unmarshal(text, into, strict); err != nil {
		return explain(err, "correct its name, or remove it")
	}
	return nil
}

var strict = json.JoinOptions(
	json.RejectUnknownMembers(true), json.MatchCaseInsensitiveNames(true), jsonv1.MatchCaseSensitiveDelimiter(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFunc(readDuration), json.UnmarshalFromFunc(decode))),
)

func decode(d *jsontext.Decoder, into decoding) error {
	return into.DecodeJSON(func(into any) error { return json.UnmarshalDecode(d, into) })
}

var errDuration = errors.New("a duration such as 30s or 5m is wanted")

// readDuration reads a text such as 30s.
func readDuration(text []byte, into *time.Duration) error {
	var written string
	err := stdjson.Unmarshal(text, &written)
	if err == nil {
		*into, err = time.ParseDuration(written)
	}
	if err != nil {
		return fmt.Errorf("%w, and not %s", errDuration, text)
	}
	return nil
}

// decoding is a value that has JSON decoded into a value of its own choice, as a line of a document
// does, which reads a field by two names. Its UnmarshalJSON would read the names that it does not
// have as well.
type decoding interface {
	DecodeJSON(decode func(into any) error) error
}

// Document is Unmarshal of text that has the content of a document, alone or in a document, and
// says whether that states zeros.
func Document(text []byte, into any, content *models.Content) error {
	if err := Unmarshal(text, into); err != nil {
		return err
	}
	// This is looked for in the text only where there is no other amount, which is rare.
	if content.StatesAmount() {
		content.Zero = false
		return nil
	}
	content.Zero = content.Zero || statesAmount(text)
	if !content.Zero && len(content.Lines)+len(content.Taxes) > 0 {
		return said("", nil, "it has lines or taxes, and no amount: state the amounts, as 0 where they are zero")
	}
	return nil
}

// amounts are the names of a document's amounts.
var amounts = []string{"net", "cost", "base", "amount", "total", "prepaid", "payable", "rounding", "fee"}

// statesAmount reports whether JSON that was read before has a number under the name of an amount.
func statesAmount(text []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	name := ""
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return false
		}
		if kind, length := decoder.StackIndex(decoder.StackDepth()); kind == '{' && length%2 == 1 {
			name = token.String()
		} else if token.Kind() == '0' && slices.Contains(amounts, name) {
			return true
		}
	}
}

// explain has a text of its own for each error: those of the package are not the same in each
// process.
func explain(err error, unknown string) *Error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return said(syntax.JSONPointer, syntax,
				"the field %q is there twice, capital and small letters being the same: remove one of them",
				syntax.JSONPointer.LastToken())
		}
		return said("", syntax.Err, "it is no JSON from byte %d on: %v", syntax.ByteOffset, syntax.Err)
	}
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return said("", err, "%v", err)
	case errors.Is(wrong, json.ErrUnknownName):
		name := wrong.JSONPointer.LastToken()
		if meant := inSmallLetters(wrong.GoType, name); meant != "" {
			unknown = fmt.Sprintf("write %q", meant)
		}
		return said(wrong.JSONPointer, wrong, "there is no field %q: %s", name, unknown)
	}
	at := string(wrong.JSONPointer)
	if at == "" {
		at = "it"
	}
	if t := wrong.GoType; t != nil && (t == reflect.TypeFor[decoding]() ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[stdjson.Unmarshaler]())) || errors.Is(wrong, errDuration) {
		return said(wrong.JSONPointer, wrong.Err, "%s: %v", at, wrong.Err)
	}
	return said(wrong.JSONPointer, wrong, "%s is %s, and %s is wanted", at, found(wrong), wanted(wrong.GoType))
}

// inSmallLetters is the field of a struct that has a name but for capital letters; empty: there is
// none.
func inSmallLetters(t reflect.Type, name string) string {
	if t == nil || t.Kind() != reflect.Struct {
		return ""
	}
	for _, f := range reflect.VisibleFields(t) {
		if field, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(field, name) {
			return field
		}
	}
	return ""
}

func said(at jsontext.Pointer, cause error, format string, args ...any) *Error {
	return &Error{Pointer: string(at), message: fmt.Sprintf(format, args...), cause: cause}
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
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number that fits into %d bits", t.Bits())
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

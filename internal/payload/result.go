package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/models"
)

// CheckResult says why the database cannot hold JSON that a job leaves, as its result or its
// progress; nil: it can. The error has no code: what a handler has done does not become undone by
// it.
func CheckResult(raw []byte) error {
	switch {
	case len(raw) > models.MaxResultBytes:
		return fmt.Errorf("it has %d bytes and may have %d", len(raw), models.MaxResultBytes)
	case !json.Valid(raw) || !utf8.Valid(raw):
		return errors.New("it is not valid JSON in UTF-8")
	}
	m := measurer{raw: raw}
	s := m.value(1)
	switch {
	case m.problem != "":
		return errors.New(m.problem)
	case s.levels > models.MaxResultLevels:
		return fmt.Errorf("it is nested deeper than %d levels", models.MaxResultLevels)
	}
	return nil
}

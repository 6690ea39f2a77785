package models

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// Currencies is a list of ISO 4217 codes, as PostgreSQL's text[].
type Currencies []string

// Scan implements sql.Scanner for the text form of an array of words that need no quotes.
func (c *Currencies) Scan(src any) error {
	text, ok := src.(string)
	if b, isBytes := src.([]byte); isBytes {
		text, ok = string(b), true
	}
	if !ok || !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return fmt.Errorf("cannot scan %v as an array of words", src)
	}
	*c = nil
	if inner := text[1 : len(text)-1]; inner != "" {
		*c = strings.Split(inner, ",")
	}
	return nil
}

// Value implements driver.Valuer.
func (c Currencies) Value() (driver.Value, error) { return "{" + strings.Join(c, ",") + "}", nil }

// Words are words without blanks, commas and quotes, as PostgreSQL's text[]: names of hooks,
// scopes, types of jobs.
type Words []string

// Scan implements sql.Scanner for the text form of an array of words.
func (w *Words) Scan(src any) error { return (*Currencies)(w).Scan(src) }

// Value implements driver.Valuer.
func (w Words) Value() (driver.Value, error) { return Currencies(w).Value() }

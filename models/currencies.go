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

// Names is a list of names of hooks, as PostgreSQL's text[].
type Names []string

// Scan implements sql.Scanner.
func (n *Names) Scan(src any) error { return (*Currencies)(n).Scan(src) }

// Value implements driver.Valuer.
func (n Names) Value() (driver.Value, error) { return Currencies(n).Value() }

// Value implements driver.Valuer.
func (c Currencies) Value() (driver.Value, error) { return "{" + strings.Join(c, ",") + "}", nil }

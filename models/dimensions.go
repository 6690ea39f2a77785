package models

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Dimensions are what statements can be split by: a value for each key, such as
// {"cost_centre": "sales"}. A key has 1 to 40 small letters, digits and underscores, and begins with
// a letter; a value is a text on one line of at most 200 bytes. In a document an empty value means
// none.
type Dimensions map[string]string

const (
	maxDimensions     = 20
	maxDimensionBytes = 200
)

var dimensionKey = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// CheckDimension says what is wrong with a key or its value; nil: nothing.
func CheckDimension(key, value string) error {
	switch {
	case !dimensionKey.MatchString(key):
		return fmt.Errorf("%.50q is not the key of a dimension: 1 to 40 small letters, digits and underscores, the first a "+
			"letter, such as cost_centre", key)
	case len(value) > maxDimensionBytes:
		return fmt.Errorf("the dimension %s has %d bytes; at most %d are taken", key, len(value), maxDimensionBytes)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return fmt.Errorf("the dimension %s is %.50q; a text on one line is wanted", key, value)
	case strings.TrimSpace(value) != value:
		return fmt.Errorf("the dimension %s is %.50q; remove the blanks at its ends", key, value)
	}
	return nil
}

// Check says what is wrong with them; nil: nothing.
func (d Dimensions) Check() error {
	if len(d) == 0 {
		return nil
	}
	if len(d) > maxDimensions {
		return fmt.Errorf("there are %d dimensions; at most %d are taken", len(d), maxDimensions)
	}
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if err := CheckDimension(key, d[key]); err != nil {
			return err
		}
	}
	return nil
}

// With returns them with those of above in place of values of the same key, without empty ones. It
// is nil when none is left. It may return one of both maps itself, and changes neither.
func (d Dimensions) With(above Dimensions) Dimensions {
	if len(above) == 0 && !d.hasEmpty() {
		if len(d) == 0 {
			return nil
		}
		return d
	}
	all := make(Dimensions, len(d)+len(above))
	maps.Copy(all, d)
	maps.Copy(all, above)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	if len(all) == 0 {
		return nil
	}
	return all
}

func (d Dimensions) hasEmpty() bool {
	for _, value := range d {
		if value == "" {
			return true
		}
	}
	return false
}

// Equal reports whether both have the same values.
func (d Dimensions) Equal(other Dimensions) bool { return maps.Equal(d, other) }

// Keys returns their keys in order.
func (d Dimensions) Keys() []string {
	if len(d) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(d))
}

// String writes them for people, in order: "cost_centre=sales, project=7".
func (d Dimensions) String() string {
	if len(d) == 0 {
		return ""
	}
	parts := make([]string, 0, len(d))
	for _, key := range d.Keys() {
		parts = append(parts, key+"="+d[key])
	}
	return strings.Join(parts, ", ")
}

// JSON writes them as an object with its keys in order; nil: there are none.
func (d Dimensions) JSON() *string {
	if len(d) == 0 {
		return nil
	}
	text, _ := json.Marshal(map[string]string(d)) // texts can be written
	return new(string(text))
}

// ParseDimensions reads what String writes: "cost_centre=sales, project=7". Empty: nil.
func ParseDimensions(text string) (Dimensions, error) {
	var d Dimensions
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, value, ok := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if _, twice := d[key]; !ok || twice {
			return nil, fmt.Errorf("%.60q: want dimensions such as cost_centre=sales, project=7, each once", text)
		}
		if d == nil {
			d = Dimensions{}
		}
		d[key] = value
	}
	return d, d.Check()
}

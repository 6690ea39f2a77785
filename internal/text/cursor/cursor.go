// Package cursor writes and reads the places where lists go on, for the HTTP API and the command
// line.
package cursor

import (
	"encoding/base64"
	"encoding/json"
)

// Of is the cursor of a place: the values of a row by which its list is ordered.
func Of(place any) string {
	data, err := json.Marshal(place)
	if err != nil {
		panic(err) // places are strings, numbers and times
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// Read reads the place of a cursor. An error says nothing that a caller could use but that it is
// none.
func Read(text string, place any) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, place)
}

// Page cuts the row off that was read beyond the limit, and returns the cursor of the next page if
// there was one.
func Page[T any](limit int, rows []T, place func(T) any) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	rows = rows[:limit]
	return rows, Of(place(rows[limit-1]))
}

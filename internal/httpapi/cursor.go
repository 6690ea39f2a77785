package httpapi

import (
	"encoding/base64"
	"encoding/json"
)

// PageInput has the parameters of every list.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most"`
	Cursor string `query:"cursor" maxLength:"2000" doc:"nextCursor of the page before; the other parameters must be the same"`
}

// decode decodes the cursor, the place where the page before ended, into place. It reports whether the request has a cursor.
func (p PageInput) decode(place any) (bool, error) {
	if p.Cursor == "" {
		return false, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		err = json.Unmarshal(data, place)
	}
	if err != nil {
		return false, invalid("query.cursor", "the cursor is not one of this server's: take nextCursor as it is, or begin without one")
	}
	return true, nil
}

// page cuts the row off that was read beyond the limit, and returns the cursor of the next page if there was one.
func page[T any](p PageInput, rows []T, place func(T) any) ([]T, string) {
	if len(rows) <= p.Limit {
		return rows, ""
	}
	rows = rows[:p.Limit]
	return rows, cursorOf(place(rows[len(rows)-1]))
}

// cursorOf is the cursor of a place.
func cursorOf(place any) string {
	data, err := json.Marshal(place)
	if err != nil {
		panic(err) // places are strings, numbers and times
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// convert turns rows that were read into rows of an answer.
func convert[T, U any](rows []T, f func(*T) U) []U {
	out := make([]U, len(rows))
	for i := range rows {
		out[i] = f(&rows[i])
	}
	return out
}

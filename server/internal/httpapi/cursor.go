package httpapi

import "github.com/daybook-dev/daybook/internal/text/cursor"

// PageInput has the parameters of every list.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most"`
	Cursor string `query:"cursor" maxLength:"2000" doc:"nextCursor of the page before; the other parameters must be the same"`
}

// decode decodes the cursor, the place where the page before ended, into place.
func (p PageInput) decode(place any) error {
	if p.Cursor == "" {
		return nil
	}
	if err := cursor.Read(p.Cursor, place); err != nil {
		return invalid("query.cursor",
			"the cursor is not one of this server's: take nextCursor as it is, or begin without one")
	}
	return nil
}

// page cuts the row off that was read beyond the limit, and returns the cursor of the next page if
// there was one.
func page[T any](p PageInput, rows []T, place func(T) any) ([]T, string) {
	return cursor.Page(p.Limit, rows, place)
}

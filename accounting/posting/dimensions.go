package posting

import (
	"fmt"

	"github.com/daybook-dev/daybook/models"
)

// checkDimensions refuses a document with dimensions that no entry can have.
func checkDimensions(doc *models.Document) error {
	if err := doc.Content.Dimensions.Check(); err != nil {
		return err
	}
	for i := range doc.Content.Lines {
		if err := doc.Content.Lines[i].Dimensions.Check(); err != nil {
			return fmt.Errorf("line %d of the document: %w", i+1, err)
		}
	}
	return nil
}

// dimensionsOf are the dimensions of what a line of a rule posts for the element in scope: those of
// the document, above them those of the document's line, above them those of the rule's.
func (e *evaluation) dimensionsOf(l *line, position int) (models.Dimensions, error) {
	all := e.dimensions
	if element, ok := e.scope.element.(*models.Line); ok && len(element.Dimensions) > 0 {
		all = all.With(element.Dimensions)
	}
	if len(l.dimensions) == 0 {
		return all, nil
	}
	own := make(models.Dimensions, len(l.dimensions))
	for _, d := range l.dimensions {
		value, err := d.value.text(&e.scope)
		if err == nil {
			err = models.CheckDimension(d.key, value)
		}
		if err != nil {
			return nil, e.fail(models.CodeDocumentInvalid, l, d.value.place, "dimensions.%s%s: %v", d.key, l.at(position), err)
		}
		own[d.key] = value
	}
	return all.With(own), nil
}

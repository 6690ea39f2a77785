package httpapi

import (
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/models"
)

// priority returns the priority of a request; huma has checked the word.
func priority(word string) models.Priority {
	p, _ := answers.ParsePriority(word)
	return p
}

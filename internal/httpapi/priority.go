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

// text returns what a column holds, or nothing for NULL.
func text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

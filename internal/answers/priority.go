package answers

import "github.com/daybook-dev/daybook/models"

// priorities are the words of the priorities.
var priorities = map[string]models.Priority{
	"high": models.PriorityHigh, "normal": models.PriorityNormal,
	"low": models.PriorityLow,
}

// Priority returns the word of a priority; of the zero value it is normal.
func Priority(p models.Priority) string {
	for word, priority := range priorities {
		if priority == p {
			return word
		}
	}
	return "normal"
}

// ParsePriority returns the priority with that word; no word is the zero value, which is normal. ok
// is false when there is no such word.
func ParsePriority(word string) (p models.Priority, ok bool) {
	p, ok = priorities[word]
	return p, ok || word == ""
}

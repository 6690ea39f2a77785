package httpapi

import "github.com/daybook-dev/daybook/models"

// priorities are the names of the priorities; the empty name is the default.
var priorities = map[string]models.Priority{
	"": 0, "high": models.PriorityHigh, "normal": models.PriorityNormal, "low": models.PriorityLow,
}

func priorityName(p models.Priority) string {
	for name, priority := range priorities {
		if priority == p {
			return name
		}
	}
	return ""
}

// text returns what a column holds, or nothing for NULL.
func text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

package disposition

import "strings"

// What the errors of attempts say that took longer than their policy allows: the whole attempt, or a
// function that a task names.
const (
	NotFinished = "not finished"
	NotReturned = "did not return within"
)

// EndedByPolicy reports whether the error of an attempt with the code TIMEOUT says that the attempt's
// policy has ended it. Otherwise something that it called did not answer within a limit of the call's own.
func EndedByPolicy(message string) bool {
	return strings.Contains(message, NotFinished) || strings.Contains(message, NotReturned)
}

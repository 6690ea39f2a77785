package disposition

// What the errors of attempts say that took longer than their policy allows: the whole attempt, or
// a function that a task names.
const (
	NotFinished = "not finished"
	NotReturned = "did not return within"
)

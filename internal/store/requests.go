package store

// Requested is what a request led to: the job and a word for what happened to it.
type Requested struct {
	JobID  string
	Result string
}

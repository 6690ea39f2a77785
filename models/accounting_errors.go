package models

import "fmt"

// JobError is why an attempt did not complete its job. What follows is decided by its Code alone.
type JobError struct {
	Code    ErrorCode
	Message string
	// Version is the version that the document has, for CodeVersionMismatch.
	Version int64
}

// Error implements error. For a nil *JobError, which is easily returned as an error by mistake, the
// text says so.
func (e *JobError) Error() string {
	if e == nil {
		return "nil *models.JobError"
	}
	return string(e.Code) + ": " + e.Message
}

// Errorf returns a JobError with a formatted message.
func Errorf(code ErrorCode, format string, args ...any) *JobError {
	return &JobError{Code: code, Message: fmt.Sprintf(format, args...)}
}

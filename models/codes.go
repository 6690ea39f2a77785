package models

// ErrorCode is the stable name of what went wrong with a job. It is in the job's last_error_code
// and in each attempt.
type ErrorCode string

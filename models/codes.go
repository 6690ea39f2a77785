package models

// ErrorCode is the stable name of what went wrong with a job. It stands beside last_error and in each attempt.
type ErrorCode string

// Package models has the rows of Daybook's tables as Go types, the states of a job with the transitions between them,
// and the stable error codes. It imports no database driver and, of Daybook, only the classes of errors.
package models

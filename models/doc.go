// Package models has as Go types the rows of those tables that applications read, the states of a
// job with the transitions between them, and the stable error codes. It imports no database driver
// and, of Daybook, only the classes of errors.
package models

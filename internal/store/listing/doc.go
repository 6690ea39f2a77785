// Package listing reads lists, searches and single rows for the command line and the HTTP API, by
// GORM, and chooses the jobs of a bulk operation.
package listing

// Package models holds the rows of Daybook's tables as Go types, the states of a job and what may follow each,
// and the stable error codes. It imports nothing of Daybook's and no driver.
package models

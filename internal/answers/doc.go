// Package answers says how the things of Daybook look as JSON: a job, an attempt, a task, a
// document, an entry.
//
// The HTTP API answers with these types, and the command line prints them with --json, so that a
// program reads one job in one form, wherever it asks. A row of the database becomes such an answer
// in one function here. The tags doc and enum are for the OpenAPI document.
package answers

// List turns rows that were read into rows of an answer; none are an empty list.
func List[T, U any](rows []T, answer func(*T) U) []U {
	out := make([]U, len(rows))
	for i := range rows {
		out[i] = answer(&rows[i])
	}
	return out
}

// Text returns what a column holds, or nothing for NULL.
func Text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// zeroOf returns what a column holds, or the zero value for NULL.
func zeroOf[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// named turns a map's keys into plain strings.
func named[K ~string](counts map[K]int64) map[string]int64 {
	out := make(map[string]int64, len(counts))
	for key, n := range counts {
		out[string(key)] = n
	}
	return out
}

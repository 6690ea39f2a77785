// Package activities is the thin layer between Temporal and the engine: it reads what an activity
// needs from its context, sends its heartbeats, and translates errors. Its results are counts and
// turn ids, never documents or amounts.
package activities

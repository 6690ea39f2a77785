// Package activities is the thin layer between Temporal and the engine: it reads what an activity needs from its context,
// beats its heart, and translates errors. What it returns are counts and turn ids, never documents or amounts.
package activities

// Package health says in words whether work gets done, and if not, what is wrong, since when, how
// much waits for it, who owns it, and what to do.
//
// Check asks the database and Temporal. Each check is bounded in time and cheap whatever the
// tables' size, and runs though others fail: with the database unavailable the report still has
// what Temporal says, and the reverse. `daybook doctor`, `daybook status`, the console and the
// metrics use it.
package health

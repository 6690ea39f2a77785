package store

import (
	"strings"
)

// Fault is what PostgreSQL says of itself by an error, where neither the statement nor its values
// are to blame.
type Fault int

const (
	// NoFault: the statement is to blame, or the error is not PostgreSQL's.
	NoFault Fault = iota
	// Outage: the server shuts down, starts, fails over or only reads, or it has ended the session.
	Outage
	// Exhausted: the server has no room on its disk, no memory or no connection left, or cannot read
	// or write its files.
	Exhausted
	// Conflict: the transaction lost against another one. The same may succeed at once.
	Conflict
	// Stale: the session has plans or prepared statements that were made for what is no longer so: a
	// table, a type or a function was changed or made anew, or a pooler has put another session in
	// the place of the one that prepared the statement. A new session has none of them.
	Stale
)

// faults is the table of such errors. An error belongs to the first row that fits it: its SQLSTATE
// begins with state, and it comes from the routine of the server, or has the words, that the row
// names. Words are only told apart where PostgreSQL does not translate them, or where they are not
// the only sign.
var faults = []struct {
	fault                 Fault
	state, routine, words string
}{
	{Stale, "0A000", "RevalidateCachedQuery", ""},
	{Stale, "0A000", "", "cached plan"},
	{Stale, "26000", "", ""}, // a prepared statement is not there, or
	{Stale, "42P05", "", ""}, // is there already
	{Stale, "08P01", "", ""}, // the server expects other columns or arguments than the driver remembers
	// A function of the application keeps the types of a row for as long as its session lives.
	{Stale, "42804", "plpgsql_param_eval_", ""},
	{Stale, "42804", "ExecEvalFieldSelect", ""},
	{Stale, "42804", "ExecEvalWholeRowVar", ""},
	{Stale, "42804", "CheckVarSlotCompatibility", ""},
	// The driver remembers the id of a type, or a plan that of an index, which was dropped meanwhile.
	{Stale, "XX000", "", "cache lookup failed"},
	{Stale, "XX000", "", "could not open relation with OID"},

	{Conflict, "40001", "", ""},
	{Conflict, "40P01", "", ""},
	{Conflict, "72000", "", ""}, // the snapshot is too old
	{Conflict, "XX000", "", "tuple concurrently"},

	{Exhausted, "53000", "", ""},
	{Exhausted, stateDiskFull, "", ""},
	{Exhausted, "53200", "", ""},
	{Exhausted, "53300", "", ""},
	{Exhausted, "58000", "", ""},
	{Exhausted, "58030", "", ""},

	{Outage, "08", "", ""},          // connection exceptions
	{Outage, "57P", "", ""},         // shutdown, crash, starting up, idle session ended
	{Outage, "53", "", ""},          // another limit of the server
	{Outage, "58", "", ""},          // another error of its files
	{Outage, stateReadOnly, "", ""}, // a standby became the primary, or this is a standby
	{Outage, stateIdleInTx, "", ""}, // idle in transaction for too long: the process was asleep
}

// FaultOf returns what PostgreSQL says of itself by err. A function that raises an error with such
// an SQLSTATE looks the same (IsRaised).
func FaultOf(err error) Fault {
	pg := pgError(err)
	if pg == nil {
		return NoFault
	}
	for _, f := range faults {
		if strings.HasPrefix(pg.Code, f.state) && strings.HasPrefix(pg.Routine, f.routine) &&
			strings.Contains(pg.Message, f.words) {
			return f.fault
		}
	}
	return NoFault
}

// IsExhausted reports whether err says that the server has no room on its disk, no memory or no
// connection left, or cannot read or write its files: that is no statement's fault, other than a
// limit that is set for it (53400, as temp_file_limit).
func IsExhausted(err error) bool { return FaultOf(err) == Exhausted }

// IsConflict reports whether err says that a transaction lost against another one, and may simply
// be tried again.
func IsConflict(err error) bool { return FaultOf(err) == Conflict }

// IsRaised reports whether a function of the database has raised err by itself, whatever it looks
// like.
func IsRaised(err error) bool {
	pg := pgError(err)
	return pg != nil && pg.Routine == "exec_stmt_raise"
}

// IsNotAsked reports whether PostgreSQL, or the way to it, has failed what code of an application
// asked by a connection of its own, for a reason that lies in neither. Conflicts are not among
// them: the application chooses what its transactions lock, and in which order.
func IsNotAsked(err error) bool {
	switch FaultOf(err) {
	case Outage, Exhausted, Stale:
		return !IsRaised(err)
	case Conflict:
		return false
	case NoFault:
	}
	return isConnectError(err) && !RefusesConnection(err)
}

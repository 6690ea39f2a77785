package store

import (
	"strings"
)

const (
	setConfig = "set_config"
	// rewritten stands for a text that an argument writes anew.
	rewritten = "QUERYREWRITER"
)

// ofTransaction says which statement in a text of SQL would reach beyond a function's savepoint: it
// ends the transaction, changes a setting or listens; empty: none does. savepoints is how many it
// makes. A text after a semicolon counts as a statement, also in a literal: then the function runs
// in a transaction of its own for nothing.
func ofTransaction(sql string) (word string, savepoints int) {
	if lower := strings.ToLower(sql); strings.Count(lower, setConfig) > strings.Count(lower, setConfig+"('daybook.") {
		return setConfig, 0
	}
	for {
		first, rest := nextWord(skipSpace(sql))
		switch first {
		case "COMMIT", "END", "ABORT", "SET", "RESET", "DISCARD", "LISTEN", "UNLISTEN", rewritten:
			return first, savepoints
		case "PREPARE":
			if second, _ := nextWord(skipSpace(rest)); second == "TRANSACTION" {
				return first + " " + second, savepoints
			}
		case "ROLLBACK":
			second, third := nextWord(skipSpace(rest))
			if second == "WORK" || second == "TRANSACTION" {
				second, _ = nextWord(skipSpace(third))
			}
			if second != "TO" || namesOwn(rest) {
				return first, savepoints
			}
		case "SAVEPOINT", "RELEASE":
			if namesOwn(rest) {
				return first, savepoints
			}
			if first == "SAVEPOINT" {
				savepoints++
			}
		}
		// What was skipped is looked at as well: in a literal it is no comment.
		end := strings.IndexByte(sql, ';')
		if end < 0 {
			return "", savepoints
		}
		sql = sql[end+1:]
	}
}

// namesOwn reports whether a statement may name a savepoint of the shared transaction's own.
func namesOwn(statement string) bool {
	statement, _, _ = strings.Cut(statement, ";")
	return strings.Contains(strings.ToLower(statement), "daybook_")
}

// skipSpace returns a text of SQL without the spaces and comments that it begins with.
func skipSpace(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(sql, "--"):
			sql = strings.TrimLeftFunc(sql, func(r rune) bool { return r != '\n' && r != '\r' })
		case strings.HasPrefix(sql, "/*"):
			sql = skipComment(sql)
		default:
			return sql
		}
	}
}

// skipComment returns what follows the comment that a text begins with. Comments nest.
func skipComment(sql string) string {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return sql[i+1:]
		}
	}
	return ""
}

// nextWord returns the word that a text begins with, in capital letters, and what follows.
func nextWord(sql string) (word, rest string) {
	n := 0
	for n < len(sql) && (sql[n]|0x20 >= 'a' && sql[n]|0x20 <= 'z' || sql[n] == '_') {
		n++
	}
	return strings.ToUpper(sql[:n]), sql[n:]
}

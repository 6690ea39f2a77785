package figures

// CountStatement is the statement by which the jobs of a kind are counted, with its arguments.
func CountStatement(kind string) (string, []any) {
	c := countings[kind]
	return c.statement, append([]any{CountMost}, c.arguments...)
}

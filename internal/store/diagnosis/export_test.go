package diagnosis

// Statements are those that read jobs, by kind.
var Statements = map[string]map[string]string{
	"due": dueStatements, "failed": failedStatements,
	"retrying": retryingStatements, "ahead": aheadStatements,
}

const CompletedStatement = completedLately

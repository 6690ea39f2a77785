package workflows

import "strings"

// Description says what a queue's run is for: what the Temporal UI shows of a run that was started
// with it.
type Description struct {
	// Kind is the kind of queue: accounting, jobs or tasks.
	Kind string
	// Summary is one line, for the list of runs and the head of the run's page:
	// StartWorkflowOptions.StaticSummary.
	Summary string
	// Details is Markdown, for the run's page: StartWorkflowOptions.StaticDetails.
	Details string
}

// Describe describes the runs of a queue's workflow by its type, such as AccountingWorkflow. The
// zero value: it is no workflow of a queue.
//
// The caller that starts a run may give Temporal its summary and details; they cannot be changed
// after that. A run that is started without them carries the summary in its memo.
func Describe(workflowType string) Description { return descriptions[workflowType] }

var descriptions = map[string]Description{
	AccountingWorkflow: newDescription("accounting", "posts documents to the ledger", "daybook.accounting_work_queue",
		"daybook accounting list --state failed"),
	JobsWorkflow: newDescription("jobs", "works background jobs", "daybook.jobs", "daybook jobs list --state failed"),
	TasksWorkflow: newDescription("tasks", "works tasks that supervisors in SQL create", "queues.task",
		"daybook tasks list"),
}

// newDescription writes a description. It keeps to what every UI of Temporal shows alike:
// paragraphs, bold, code and lists, no tables.
func newDescription(kind, does, table, failed string) Description {
	return Description{
		Kind:    kind,
		Summary: "Daybook, kind " + kind + ": " + does,
		Details: strings.Join([]string{
			"This run **" + does + "** until it is cancelled. It continues as new by itself.",
			"",
			"- Its jobs: the table `" + table + "`",
			"- Is work getting done? `daybook status`",
			"- What is wrong? `daybook doctor`",
			"- What failed? `" + failed + "`",
			"- Stop and go on: the signals `pause` and `resume`",
			"- Other settings: the update `configure`",
			"- Figures as JSON: the query `status`",
			"- End it: cancel it; running jobs end first. Do not terminate it",
		}, "\n") + boxEnd,
	}
}

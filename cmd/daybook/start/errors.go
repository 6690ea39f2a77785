package start

import (
	"github.com/daybook-dev/daybook/failure"
)

var (
	errNoWorkflow      = failure.New(failure.WorkflowNotRunning, "the workflow does not run")
	errNoWorkerAnswers = failure.New(failure.NoWorker, "no worker answers")
)

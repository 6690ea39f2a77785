// Package workers embeds Daybook's workers in a program: NewAccounting for documents, NewJobs for
// background jobs, NewTasks for tasks. A worker registers the workflow and the activities of its
// queue, runs them on the task queue, and drains when the program ends.
//
//	w, err := workers.NewAccounting(workers.AccountingOptions{Client: temporalClient, Pool: pool})
//	if err != nil { … }
//	defer w.Close()
//	err = w.Run(ctx) // until ctx ends; then it drains
package workers

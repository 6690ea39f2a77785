// Package workers embeds Daybook's worker in a program: it registers the workflow and the activities, starts them on the
// task queue, and drains them when the program ends.
//
//	w, err := workers.NewAccounting(workers.AccountingOptions{Client: temporalClient, Pool: pool})
//	if err != nil { … }
//	defer w.Close()
//	err = w.Run(ctx) // until ctx ends; then it drains
package workers

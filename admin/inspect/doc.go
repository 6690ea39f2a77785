// Package inspect lists jobs of each kind and reads single ones, with the filters and cursors of
// the HTTP API: for an application's own pages, checks and tools. It locks and changes nothing.
//
//	r, err := inspect.New(pool)
//	…
//	defer r.Close()
//	page, err := r.Jobs(ctx, inspect.JobFilter{OrgID: "acme", State: models.JobFailed}, inspect.Page{})
//	next, err := r.Jobs(ctx, inspect.JobFilter{OrgID: "acme", State: models.JobFailed}, inspect.Page{Cursor: page.Next})
//
// To follow one job that the program has enqueued itself, package queue is smaller: ReadJobStatus,
// WaitJob. The database's role needs the rights of daybook_reader.
package inspect

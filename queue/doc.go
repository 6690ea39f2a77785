// Package queue is how domain code asks for work of any kind: it enqueues accounting jobs,
// background jobs and tasks inside the caller's own transaction, so that a document and the job
// that posts it are committed together or not at all.
//
// It imports neither Temporal nor the rule engine. Every function takes a Querier: a pgx
// transaction as it is, or a database/sql or GORM transaction through SQL or GORM.
//
//	tx, err := pool.Begin(ctx)
//	…
//	_, err = queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: "org_123", ID: "doc_456"})
//	err = tx.Commit(ctx)
//
// EnqueueJob and EnqueueJobs do the same for jobs of any type: webhooks, mail, reports or any other
// work of an application. Package jobs has their handlers. EnqueueTask and EnqueueTasks enqueue
// tasks; package tasks has their processors.
//
// ReadAccountingJobStatus and ReadJobStatus say what became of a job. WaitAccountingJob and
// WaitJob, called after the commit, wait until it has ended.
//
// Besides the errors that a function names, each that takes a Querier returns ErrNoQuerier when
// that is nil, ErrDryRun on a GORM handle of a dry run, ErrNoTransaction on a GORM handle outside
// of a transaction, and ErrNotMigrated where the database lacks Daybook's schema.
//
// Under REPEATABLE READ and SERIALIZABLE a request can fail with a serialization error (SQLSTATE
// 40001), as any statement can: try the transaction again.
package queue

package workflows

// Version is the version of the workflow code. Raise it with each change that could not replay a
// recorded history without a workflow.GetVersion, and record histories of the new code:
//
//	DAYBOOK_RECORD_HISTORIES=1 go test -run 'TestRecord.*Histories' ./workers
//
// 1: lanes and turns.
// 2: a run keeps a memo.
// 3: a workflow begins with turns.
// 4: a turn is one activity, which waits for work as well.
const Version = 4

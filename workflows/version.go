package workflows

// Version is the number of the workflow code's commands. Raise it with each change that a recorded history of the code
// before could not replay without a workflow.GetVersion, and record histories of the new code:
//
//	DAYBOOK_RECORD_HISTORIES=1 go test -run 'TestRecord.*Histories' ./workers
//
// 1: lanes and turns.
const Version = 1

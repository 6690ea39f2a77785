// Package workflows holds the orchestration and nothing else: lanes and turns, pause and resume, settings, continue-as-new.
// What a turn does is in the activities; what has to be true of jobs is in the database.
//
// A change of this code must replay every history under testdata/: add a workflow.GetVersion where the commands change,
// and record a history of the code before.
package workflows

// Package workflows has the orchestration and nothing else: lanes and turns, pause and resume,
// settings, continue-as-new. The work of a turn is in the activities; the rules for jobs are in the
// database.
//
// A change of this code must replay every history under testdata/: add a workflow.GetVersion where
// the commands change, and record a history of the code before.
package workflows

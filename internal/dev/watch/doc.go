// Package watch holds the files that Daybook is watched with to the program: its tests fail where
// an alert, a dashboard or the runbook names a metric, a column, a command or a section that does
// not exist. promtool tests the rules themselves: make test-alerts.
package watch

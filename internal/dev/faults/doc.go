// Package faults has the test that ten faults are named by everything that Daybook is watched with:
// daybook doctor, the metrics, the alerts, and the console's overview. It runs the program's own
// binary, as an operator would.
package faults

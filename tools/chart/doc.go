// Package chart pins the programs that check deploy/helm/daybook, and tests its package: make test-chart.
package chart

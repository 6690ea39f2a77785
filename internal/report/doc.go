// Package report prints reports about the ledger: a model of tables, HTML of it by a template, and
// PDF of that HTML.
//
// HTML is the one way in: WritePDF lays out a subset of HTML by itself, with a library that draws
// text and lines. So the templates of an operator work for both formats, and no browser runs beside
// the worker. What the subset has is said at WritePDF.
package report

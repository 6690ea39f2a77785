// Package posting turns a business document into balanced double-entry bookings by an
// organization's rules.
//
// A rule set is a YAML file with expressions in CEL (https://cel.dev). Compile reads and
// type-checks it once; Evaluate then returns the entries that one document causes:
//
//	rules, err := posting.Compile(source)
//	impact, err := rules.Evaluate(document, chart)
//
// The package is pure: it reads no file, no clock and no network, and the same document and rule
// set always give the same entries. It computes in int64 minor units only; there is no floating
// point number in it, and an overflow is an error. The rule language is described in docs/rules.md.
package posting

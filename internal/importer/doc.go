// Package importer turns documents of other formats into models.Document: GOBL invoices and payments, and Daybook's
// own format of one JSON document a line. It only converts; nothing here reads a file by name or writes to a database.
// The formats and the conversions are described in docs/import.md.
package importer

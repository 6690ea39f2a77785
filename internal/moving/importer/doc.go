// Package importer turns documents of other formats into models.Document: GOBL invoices and
// payments, electronic invoices (UBL, CII, Factur-X), bank statements (camt.053, MT940), hledger's
// journals, CSV files by a mapping, and Daybook's own format of one JSON document a line. It
// converts, and finds the files to read in folders and archives; nothing here writes to a database.
// The formats and the conversions are described in docs/import.md.
package importer

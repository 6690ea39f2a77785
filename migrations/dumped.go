package migrations

import _ "embed" // the dumped schema

// dumped is the schema as the migrations make it: `make schema` writes it, and a test compares it
// with a new database.
//
//go:embed schema.sql
var dumped string

// Schema is the schema that the migrations make, as SQL that pg_dump could have written: for people
// who review it, and for what compares a database with it.
func Schema() string { return dumped }

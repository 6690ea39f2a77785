package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/models"
)

// column is one that a statement must return.
type column struct {
	name string
	// is says what it must be, and types which types of PostgreSQL can be read as that.
	is    string
	types []uint32
}

var (
	whole = []uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID}
	// NULL by itself is a text
	times   = []uint32{pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID, pgtype.TextOID}
	content = []uint32{pgtype.JSONBOID, pgtype.JSONOID, pgtype.TextOID, pgtype.VarcharOID, pgtype.ByteaOID}
)

// readColumns are those of Read.
var readColumns = []column{
	{"n", "bigint, the position in the arrays", whole},
	{"version", "bigint", whole},
	{"ready_at", "timestamptz", times},
	{"deleted_at", "timestamptz", times},
	{"document", "jsonb", content},
}

// plain is a column's name as the driver compares it with that of a field.
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// programError is an error in how the application reads its tables: no document can be read until
// its program is mended. Its code is SOURCE_INVALID.
type programError struct{ is *models.JobError }

func (e *programError) Error() string { return e.is.Message }
func (e *programError) Unwrap() error { return e.is }

func wrong(format string, args ...any) error {
	return &programError{models.Errorf(models.CodeSourceInvalid, format, args...)}
}

// checkRead says what is wrong with the columns of Read. They are matched by name, in any order.
func checkRead(fields []pgconn.FieldDescription) error {
	seen := map[string]bool{}
	var problems []string
	for i, f := range fields {
		at := slices.IndexFunc(readColumns, func(c column) bool { return plain(c.name) == plain(f.Name) })
		switch {
		case at < 0:
			problems = append(problems, fmt.Sprintf("column %d is called %q, which is none of them", i+1, f.Name))
		case seen[plain(f.Name)]:
			problems = append(problems, fmt.Sprintf("column %d is called %s, as one before it is", i+1, f.Name))
		case !slices.Contains(readColumns[at].types, f.DataTypeOID):
			problems = append(problems,
				fmt.Sprintf("the column %s is of the type %s, and must be %s", f.Name, typeName(f.DataTypeOID),
					readColumns[at].is))
		}
		seen[plain(f.Name)] = true
	}
	for _, c := range readColumns {
		if !seen[plain(c.name)] {
			problems = append(problems, "the column "+c.name+" is missing")
		}
	}
	if problems == nil {
		return nil
	}
	return wrong("Read: %s. It must return the columns n, version, ready_at, deleted_at and document, which are "+
		"matched by name: name an expression by AS, as in `now() AS ready_at`",
		strings.Join(problems, "; "))
}

// checkLock says what is wrong with the columns of Lock.
func checkLock(fields []pgconn.FieldDescription) error {
	if len(fields) == 1 && slices.Contains(whole, fields[0].DataTypeOID) {
		return nil
	}
	var have []string
	for _, f := range fields {
		have = append(have, f.Name+" "+typeName(f.DataTypeOID))
	}
	return wrong("Lock: it returns the columns (%s), and must return one: the positions in the arrays, from 1, as bigint",
		strings.Join(have, ", "))
}

// typeName is the name of a type, or its number for one that is not PostgreSQL's own.
func typeName(oid uint32) string {
	if t, ok := builtin.TypeForOID(oid); ok {
		return t.Name
	}
	return fmt.Sprintf("number %d in pg_type", oid)
}

var builtin = pgtype.NewMap()

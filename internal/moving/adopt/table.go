package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// ErrNoTable: there is no table or view of that name.
var ErrNoTable = failure.New(failure.TableNotFound, "no such table")

// Column is a column of a legacy table.
type Column struct {
	Name string
	// Type is PostgreSQL's name of it, such as timestamp(3) without time zone.
	Type string
	// Zoneless says that it is a timestamp without time zone: it is read as UTC.
	Zoneless bool
	// Labels are the values of an enum; nil: it is none.
	Labels []string
	// Generated says that the table computes it: "s" stored, "v" virtual, which PostgreSQL has from
	// version 18 on, and where it is the default; empty: it is an ordinary column.
	Generated string
}

// Table is a legacy table, or a view, as the database describes it.
type Table struct {
	// Name is the name with the schema, quoted where that is needed: it can stand in a statement as
	// it is.
	Name string
	// View says that it cannot be locked or changed.
	View    bool
	Columns []Column
	// References are the tables that its foreign keys name, by the last column of the key.
	References map[string]string
	// OwnersMay says that the owner of Daybook's schema may read and change it, which a trigger of
	// Daybook needs. MayTrigger says that the present role may put a trigger on it.
	OwnersMay, MayTrigger bool
	// OtherOwner is its owner when that role is not the owner of Daybook's schema and no member of
	// it; empty: it is.
	OtherOwner string
}

// LookAt describes a table; name is one as SQL writes it. Without a schema it is looked for on the
// search path.
func LookAt(ctx context.Context, q store.Querier, name string) (Table, error) {
	const table = `
SELECT c.oid, format('%I.%I', n.nspname, c.relname), c.relkind IN ('v', 'm'),
       has_table_privilege(o.nspowner, c.oid, 'SELECT, UPDATE'), has_table_privilege(c.oid, 'TRIGGER'),
       CASE WHEN pg_has_role(c.relowner, o.nspowner, 'MEMBER') THEN '' ELSE c.relowner::regrole::text END
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_namespace o ON o.nspname = 'daybook'
 WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`
	const columns = `
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), a.atttypid = 'timestamp'::regtype,
       (SELECT array_agg(e.enumlabel::text ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid),
       a.attgenerated::text
  FROM pg_attribute a
 WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum`
	const references = `
SELECT a.attname::text, format('%I.%I', n.nspname, r.relname)
  FROM pg_constraint k
  JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[cardinality(k.conkey)]
  JOIN pg_class r ON r.oid = k.confrelid
  JOIN pg_namespace n ON n.oid = r.relnamespace
 WHERE k.conrelid = $1 AND k.contype = 'f'`
	t := Table{References: map[string]string{}}
	var oid uint32
	err := q.QueryRow(ctx, table, name).Scan(&oid, &t.Name, &t.View, &t.OwnersMay, &t.MayTrigger, &t.OtherOwner)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, fmt.Errorf("%w: %s in this database; if it has another name, give that with its schema, as schema.table",
			ErrNoTable, name)
	}
	if err != nil {
		return t, store.Wrap("look at "+name, err)
	}
	if t.Columns, err = store.Collect(ctx, q, pgx.RowToStructByPos[Column], columns, oid); err != nil {
		return t, store.Wrap("look at "+name, err)
	}
	var column, to string
	err = store.Each(ctx, q, []any{&column, &to}, func() error {
		t.References[column] = to
		return nil
	}, references, oid)
	return t, store.Wrap("look at "+name, err)
}

// Column returns the column of that name, or nil.
func (t Table) Column(name string) *Column {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Columns[i]
}

// Has reports whether there is such a column.
func (t Table) Has(name string) bool { return t.Column(name) != nil }

// Writable reports whether there is such a column and the table does not compute it.
func (t Table) Writable(name string) bool {
	c := t.Column(name)
	return c != nil && c.Generated == ""
}

// Text is an expression of the column as text, or the fallback where the table lacks it. from is
// the table's name in the statement.
func (t Table) Text(from, column, fallback string) string {
	if !t.Has(column) {
		return fallback
	}
	return from + "." + pgx.Identifier{column}.Sanitize() + "::text"
}

// Time is an expression of the column as a timestamptz, or the fallback where the table lacks it. A
// column without a time zone is UTC.
func (t Table) Time(from, column, fallback string) string {
	c := t.Column(column)
	if c == nil {
		return fallback
	}
	name := from + "." + pgx.Identifier{column}.Sanitize()
	if c.Zoneless {
		return "(" + name + " AT TIME ZONE 'UTC')"
	}
	return name + "::timestamptz"
}

// Compare returns which of the wanted columns the table lacks, and which it has besides.
func (t Table) Compare(wanted []string) (lacks, more []string) {
	for _, name := range wanted {
		if !t.Has(name) {
			lacks = append(lacks, name)
		}
	}
	for _, c := range t.Columns {
		if !slices.Contains(wanted, c.Name) {
			more = append(more, c.Name)
		}
	}
	return lacks, more
}

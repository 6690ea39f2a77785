package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// GuardKind is what a guard is.
type GuardKind string

const (
	GuardCheck GuardKind = "check constraint"
	// GuardKey is a primary key, a unique constraint or a foreign key.
	GuardKey     GuardKind = "key"
	GuardIndex   GuardKind = "unique index"
	GuardTrigger GuardKind = "trigger"
)

// Guard is a constraint, unique index or trigger of a table.
type Guard struct {
	Kind GuardKind
	// Table is the table's name with its schema's: "daybook.jobs".
	Table, Name string
	// Definition is how the server writes it, with all names qualified, without the parameters of its
	// storage; empty for a check, which versions of the server write differently.
	Definition string
}

// foundGuard is a guard of the database.
type foundGuard struct {
	Guard
	// defect says why it does not hold; empty: it does.
	defect string
}

// readGuards reads the guards of the schemas daybook and queues, those that do not hold as well.
func readGuards(ctx context.Context, tx pgx.Tx) ([]foundGuard, error) {
	const stmt = `
SELECT CASE k.contype WHEN 'c' THEN 'check constraint' ELSE 'key' END, c.relnamespace::regnamespace || '.' || c.relname, k.conname,
       CASE k.contype WHEN 'c' THEN '' ELSE pg_get_constraintdef(k.oid) END,
       CASE WHEN NOT k.convalidated THEN 'is not validated: rows that were there before may break it'
            WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgconstraint = k.oid AND t.tgenabled NOT IN ('O', 'A')) THEN 'is disabled'
            WHEN EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = k.conindid AND k.contype IN ('p', 'u') AND NOT (i.indisvalid AND i.indisready)) THEN 'has an invalid index'
            ELSE '' END
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
 WHERE k.connamespace::regnamespace::text IN ('daybook', 'queues') AND k.contype IN ('c', 'p', 'u', 'f', 'x') AND c.relname <> 'schema_migrations'
UNION ALL
SELECT 'unique index', c.relnamespace::regnamespace || '.' || c.relname, x.relname, pg_get_indexdef(i.indexrelid), CASE WHEN i.indisvalid AND i.indisready THEN '' ELSE 'is invalid' END
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
  JOIN pg_class c ON c.oid = i.indrelid
 WHERE x.relnamespace::regnamespace::text IN ('daybook', 'queues') AND i.indisunique AND c.relname <> 'schema_migrations'
   AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
UNION ALL
SELECT 'trigger', c.relnamespace::regnamespace || '.' || c.relname, t.tgname, pg_get_triggerdef(t.oid), CASE WHEN t.tgenabled IN ('O', 'A') THEN '' ELSE 'is disabled' END
  FROM pg_trigger t
  JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace::regnamespace::text IN ('daybook', 'queues') AND NOT t.tgisinternal`
	// With no search path the server qualifies every name. It quotes those that need it, whatever the
	// database's default is.
	if _, err := tx.Exec(ctx, `SET LOCAL search_path = ''; SET LOCAL quote_all_identifiers = off`); err != nil {
		return nil, err
	}
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (foundGuard, error) {
		var g foundGuard
		err := row.Scan(&g.Kind, &g.Table, &g.Name, &g.Definition, &g.defect)
		if g.Kind == GuardIndex {
			g.Definition = withoutStorage(g.Definition)
		}
		return g, err
	}, stmt)
}

// object is the guard's name in daybook.schema_texts.
func (g Guard) object() string {
	_, table, _ := strings.Cut(g.Table, ".")
	switch g.Kind {
	case GuardIndex:
		return "index " + g.Name
	case GuardTrigger:
		return "trigger " + table + "." + g.Name
	default:
		return "constraint " + table + "." + g.Name
	}
}

// checkGuards compares the guards that there should be with those that there are. Others may be
// there besides.
func checkGuards(ctx context.Context, tx pgx.Tx, o Options, r *Report) error {
	missing := CheckResult{
		Kind: "missing_guard",
		Rule: "the constraints, foreign keys, unique indexes and triggers that the migrations make are there, valid " +
			"and enabled",
		Findings: []Finding{},
	}
	changed := CheckResult{
		Kind:     "guard_of_newer_program",
		Rule:     "what a newer program took away from the schema, or made otherwise, is for its own audit to look for",
		Findings: []Finding{},
	}
	noted, newer, err := notedByNewer(ctx, tx, o.Newest)
	if err != nil {
		return err
	}
	found, err := readGuards(ctx, tx)
	if err != nil {
		return err
	}
	type key struct {
		kind        GuardKind
		table, name string
	}
	there := make(map[key]foundGuard, len(found))
	for _, g := range found {
		there[key{g.Kind, g.Table, g.Name}] = g
	}
	for _, want := range o.Guards {
		have, ok := there[key{want.Kind, want.Table, want.Name}]
		var detail string
		check := &missing
		switch {
		case !ok:
			detail = "is missing"
			if newer && !slices.Contains(noted, want.object()) {
				check = &changed
			}
		case have.defect != "":
			detail = have.defect
		case have.Definition != want.Definition:
			detail = fmt.Sprintf("is %q, and was made as %q", have.Definition, want.Definition)
			if newer {
				check = &changed
			}
		default:
			continue
		}
		check.Count++
		if len(check.Findings) < o.Limit {
			check.Findings = append(check.Findings,
				Finding{Detail: fmt.Sprintf("%s %s of %s %s", want.Kind, want.Name, want.Table, detail)})
		}
	}
	r.Checks = append(r.Checks, missing)
	if newer {
		r.Warnings = append(r.Warnings, changed)
	}
	return nil
}

// notedByNewer reads what the newest migration left, where that is one after newest, which is not 0.
func notedByNewer(ctx context.Context, tx pgx.Tx, newest int64) (objects []string, newer bool, err error) {
	const stmt = `
SELECT t.objects
  FROM daybook.schema_texts t
 WHERE t.version > nullif($1, 0) AND t.objects IS NOT NULL
   AND EXISTS (SELECT FROM daybook.schema_migrations m WHERE m.version_id = t.version AND m.is_applied)
 ORDER BY t.version DESC
 LIMIT 1`
	err = tx.QueryRow(ctx, stmt, newest).Scan(&objects)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, false, nil
	}
	return objects, err == nil, err
}

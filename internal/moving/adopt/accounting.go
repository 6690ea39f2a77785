package adopt

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// What the tables of an accounting queue are called where they are not named.
const (
	DefaultAccountingTable = "public.accounting_work_queue"
	// DefaultStaleAfter is the age of a lease from which the legacy queue itself takes a row for
	// abandoned.
	DefaultStaleAfter = 15 * time.Minute
	// DefaultAttemptedWithin is how long after its last attempt a pending row is left to the legacy
	// worker.
	DefaultAttemptedWithin = time.Minute
)

// AccountingOptions say what to adopt, and how.
type AccountingOptions struct {
	// Table is the legacy queue. Default: DefaultAccountingTable.
	Table string
	// Documents is the table of documents; its column accounting_impact_created_at says whether
	// something is posted of one. Default: the table that the legacy queue's foreign key document_id
	// names, if there is one.
	Documents string
	// Entries is a view or table of what the legacy ledger holds: org_id, document_id, account, side
	// (debit or credit), amount (in minor units), currency, and, if it has it, posting_date. Empty:
	// it is not known.
	Entries string
	// Orgs are the organizations whose rows are adopted; none: all.
	Orgs []string
	// Next is what the next version of a document does that is posted already. Default:
	// models.NextDifference with Entries, else models.NextWait.
	Next models.NextPosting
	// Source is put on record as the source of the organizations' documents; empty: it is left as it
	// is.
	Source string
	// Forward has rows that old code inserts later go straight to Daybook. Otherwise the legacy
	// worker may work them until the next repetition.
	Forward bool
	// StaleAfter is the age from which a lease of the legacy worker counts as abandoned. Default:
	// DefaultStaleAfter.
	StaleAfter time.Duration
	// AttemptedWithin is how long after its last attempt a pending row is left to the legacy worker:
	// old code may have asked for it again while the worker still posts what it leased before.
	// Default: DefaultAttemptedWithin.
	AttemptedWithin time.Duration
}

// Accounting adopts a legacy accounting queue: one row per organization and document, with a
// version hint.
type Accounting struct {
	pool    *pgxpool.Pool
	options AccountingOptions

	table     Table
	documents *Table
	entries   *Table
	id        string
	// problems are those of the tables themselves.
	problems Problems
}

// The columns of a legacy accounting queue. Without the first ones nothing can be adopted; the
// others have defaults.
var (
	neededColumns = []string{"id", "org_id", "document_id", "version_hint", "state"}
	knownColumns  = []string{
		"id", "org_id", "document_id", "version_hint", "state", "ready_at", "run_count",
		"last_attempted_at", "last_error", "created_at", "updated_at",
	}
	entryColumns = []string{"org_id", "document_id", "account", "side", "amount", "currency"}
)

// NewAccounting looks at the tables that the options name.
func NewAccounting(ctx context.Context, pool *pgxpool.Pool, o AccountingOptions) (*Accounting, error) {
	o.Table = cmp.Or(o.Table, DefaultAccountingTable)
	o.StaleAfter, o.AttemptedWithin = cmp.Or(o.StaleAfter, DefaultStaleAfter),
		cmp.Or(o.AttemptedWithin, DefaultAttemptedWithin)
	if o.Next == "" {
		o.Next = models.NextWait
		if o.Entries != "" {
			o.Next = models.NextDifference
		}
	}
	a := &Accounting{pool: pool, options: o}
	var err error
	if a.table, err = LookAt(ctx, pool, o.Table); err != nil {
		return nil, err
	}
	if c := a.table.Column("id"); c != nil {
		a.id = c.Type
	}
	if name := cmp.Or(o.Documents, a.table.References["document_id"]); name != "" {
		t, err := LookAt(ctx, pool, name)
		if err != nil {
			return nil, err
		}
		a.documents = &t
	}
	if o.Entries != "" {
		t, err := LookAt(ctx, pool, o.Entries)
		if err != nil {
			return nil, err
		}
		a.entries = &t
	}
	a.checkTables()
	return a, nil
}

// checkTables says what of the tables does not fit.
func (a *Accounting) checkTables() {
	p := &a.problems
	if strings.HasPrefix(a.table.Name, "daybook.") {
		p.Block("OWN_TABLE", a.table.Name+" is Daybook's own table: name the legacy one by --table")
	}
	if a.table.View {
		p.Block("NOT_A_TABLE", a.table.Name+" is a view: its rows cannot be locked; name the table")
	}
	if lacks, _ := a.table.Compare(neededColumns); len(lacks) > 0 {
		p.Block("COLUMN_MISSING",
			fmt.Sprintf("%s lacks %s: add the columns, or write a table of this shape and adopt that", a.table.Name,
				strings.Join(lacks, ", ")))
	}
	if c := a.table.Column("state"); c != nil && c.Labels != nil {
		for _, label := range []string{"pending", "cancelled"} {
			if !strings.Contains(" "+strings.Join(c.Labels, " ")+" ", " "+label+" ") {
				p.Block("STATE_MISSING", fmt.Sprintf("the type %s has no %s, by which Daybook marks rows: ALTER TYPE … ADD "+
					"VALUE", c.Type, label))
			}
		}
	}
	p.addGenerated(a.table, append(neededColumns, "ready_at"), []string{"state", "last_error"})
	if !a.table.MayTrigger {
		p.Block("NO_TRIGGER_RIGHT", "the present role may not put a trigger on "+a.table.Name+
			", which hands requests of old code on: run as the table's owner")
	}
	if !a.table.OwnersMay {
		p.Block("OWNER_RIGHTS", "the owner of the schema daybook may not read and change "+a.table.Name+
			": GRANT SELECT, UPDATE to it, because its trigger marks rows")
	}
	p.addOwner(a.table)
	if !a.table.Has("last_attempted_at") {
		p.Add("LEASES_STAY", a.table.Name+
			" lacks last_attempted_at: no lease counts as abandoned, so leased rows are left until their worker ends them",
			"")
	}
	if a.entries != nil {
		if lacks, _ := a.entries.Compare(entryColumns); len(lacks) > 0 {
			p.Block("ENTRIES_COLUMN_MISSING", fmt.Sprintf("%s lacks %s", a.entries.Name, strings.Join(lacks, ", ")))
		}
	} else if a.options.Next == models.NextDifference {
		p.Block("ENTRIES_UNKNOWN", "differences can be posted only where it is known what is posted already: name the "+
			"legacy ledger's entries by --entries")
	}
	if a.documents != nil && !a.documents.Has("accounting_impact_created_at") {
		p.Add("POSTED_FLAG_MISSING", a.documents.Name+" lacks accounting_impact_created_at: whether an earlier version "+
			"of an open document is posted is known only by --entries", "")
	}
}

// misfit is an expression: why a row l cannot be adopted; null: it can.
func (a *Accounting) misfit() string {
	times := make([]string, 0, 4)
	for _, c := range []string{"ready_at", "last_attempted_at", "created_at", "updated_at"} {
		if a.table.Has(c) {
			times = append(times, a.table.Time("l", c, ""))
		}
	}
	outside := "false"
	if len(times) > 0 {
		list := strings.Join(times, ", ")
		outside = "least(" + list + ") < '0001-01-02 00:00:00+00' OR greatest(" + list + ") > '9999-12-30 00:00:00+00'"
	}
	return `CASE WHEN coalesce(octet_length(l.org_id::text), 0) NOT BETWEEN 1 AND 255 THEN 'ORG_INVALID'
              WHEN coalesce(octet_length(l.document_id::text), 0) NOT BETWEEN 1 AND 255 THEN 'DOCUMENT_INVALID'
              WHEN coalesce(l.version_hint::text::numeric, -1) NOT BETWEEN 0 AND 9223372036854775806 THEN 'VERSION_INVALID'
              WHEN (l.state::text IN ('pending', 'leased', 'completed', 'failed', 'cancelled')) IS NOT TRUE THEN 'STATE_UNKNOWN'
              WHEN ` + outside + ` THEN 'TIME_INVALID' END`
}

// misfits says of each code of misfit what to do.
var misfits = map[string]string{
	"ORG_INVALID":      "org_id is empty or longer than 255 bytes: correct the row",
	"DOCUMENT_INVALID": "document_id is empty or longer than 255 bytes: correct the row",
	"VERSION_INVALID":  "version_hint is null or negative: correct the row",
	"STATE_UNKNOWN":    "the state is none of pending, leased, completed, failed and cancelled: correct the row",
	"TIME_INVALID":     "a time is infinite or no year from 1 to 9999: correct the row",
}

// inWork is an expression: whether the legacy worker may be working on the row l. It holds a lease
// that is not abandoned, or made an attempt so lately that it may still post what it leased before
// the row was asked for again.
func (a *Accounting) inWork() string {
	at := a.table.Time("l", "last_attempted_at", "NULL::timestamptz")
	return fmt.Sprintf(`CASE l.state::text WHEN 'leased' THEN coalesce(%[1]s >= clock_timestamp() - interval '%[2]d milliseconds', true)
              WHEN 'pending' THEN coalesce(%[1]s >= clock_timestamp() - interval '%[3]d milliseconds', false) ELSE false END`,
		at, a.options.StaleAfter.Milliseconds(), a.options.AttemptedWithin.Milliseconds())
}

// hash is an expression: the hash of a document in a version.
func hash(org, document, version string) string {
	return fmt.Sprintf("hashtextextended(%s::text || '/' || %s::text || '/' || %s::text, 0)", org, document, version)
}

// Look implements Adopter.
func (a *Accounting) Look(ctx context.Context) (Plan, error) {
	lacks, more := a.table.Compare(knownColumns)
	p := Plan{Table: a.table.Name, Missing: lacks, Ignored: more, Problems: append(Problems{}, a.problems...)}
	if len(a.problems.Blocking()) > 0 {
		return p, nil
	}
	if err := store.ReadSnapshot(ctx, a.pool, func(tx pgx.Tx) error {
		if err := a.count(ctx, tx, &p); err != nil {
			return err
		}
		return a.lookAround(ctx, tx, &p)
	}); err != nil {
		return p, store.Wrap("look at "+a.table.Name, err)
	}
	p.Notes = a.notes()
	return p, nil
}

// count counts the legacy rows by what becomes of them.
func (a *Accounting) count(ctx context.Context, q store.Querier, p *Plan) error {
	stmt := `
SELECT coalesce(r.org, ''), r.state, r.fate, count(*), (sum(r.hash::numeric) % 18446744073709551616)::text, (array_agg(r.org || '/' || r.id ORDER BY r.id))[1:5]
  FROM (SELECT l.org_id::text AS org, l.id::text AS id, coalesce(held.taken_state, l.state::text, '') AS state,
               CASE WHEN held.legacy_id IS NOT NULL THEN 'HELD'
                    WHEN ` + a.misfit() + ` IS NOT NULL THEN ` + a.misfit() + `
                    WHEN ` + a.inWork() + ` THEN 'LEASED'
                    ELSE '' END AS fate,
               coalesce(` + hash("l.org_id", "l.document_id", "l.version_hint") + `, 0) AS hash
          FROM ` + a.table.Name + ` l
          LEFT JOIN daybook.adopted_rows held ON held.legacy_table = $1 AND held.legacy_id = l.id::text
         WHERE cardinality($2::text[]) = 0 OR l.org_id::text = ANY ($2)) r
 GROUP BY 1, 2, 3
 ORDER BY 1, 2, 3`
	var g Group
	var fate, sum string
	var examples []string
	return store.Each(ctx, q, []any{&g.OrgID, &g.State, &fate, &g.Rows, &sum, &examples}, func() error {
		var err error
		if g.Checksum, err = parseChecksum(sum); err != nil {
			return err
		}
		if fate == "HELD" {
			p.Held.Merge(Groups{g})
			return nil
		}
		p.Found.Merge(Groups{g})
		if fate == "" {
			p.Take.Merge(Groups{g})
			return nil
		}
		p.Leave.Merge(Groups{g})
		if fate != "LEASED" {
			p.Problems.Merge(Problems{{
				Code: fate, Rows: g.Rows, Detail: misfits[fate],
				Examples: append([]string(nil), examples...),
			}})
		}
		return nil
	}, stmt, a.table.Name, a.orgs())
}

// lookAround looks at what the rows to adopt need in Daybook.
func (a *Accounting) lookAround(ctx context.Context, q store.Querier, p *Plan) error {
	const stmt = `
SELECT k.org, o.active_rule_set IS NOT NULL, coalesce(o.source, d.source)
  FROM unnest($1::text[]) AS k (org)
 CROSS JOIN daybook.defaults d
  LEFT JOIN daybook.organizations o ON o.id = k.org
 ORDER BY k.org`
	var orgs []string
	for _, g := range p.Found {
		if n := len(orgs); n == 0 || orgs[n-1] != g.OrgID {
			orgs = append(orgs, g.OrgID)
		}
	}
	var org, source string
	var rules bool
	return store.Each(ctx, q, []any{&org, &rules, &source}, func() error {
		if !rules {
			p.Problems.Add("NO_RULE_SET", "the organization has no active rules in Daybook: its documents will fail with "+
				"NO_MATCHING_RULE until `daybook rules apply`", org)
		}
		if a.options.Source == "" && source == store.SourceDaybook && a.documents != nil &&
			a.documents.Name != "daybook.documents" {
			p.Problems.Add("SOURCE_NOT_SET", fmt.Sprintf("its documents are in %s, and Daybook reads daybook.documents: "+
				"name the source of the application's worker by --source", a.documents.Name), org)
		}
		return nil
	}, stmt, orgs)
}

// notes say what an apply does besides.
func (a *Accounting) notes() []string {
	notes := []string{"requests of old code for documents that Daybook holds go on to Daybook, by a trigger on " +
		a.table.Name}
	if a.options.Forward {
		notes = append(notes, "rows that old code inserts go straight to Daybook, by the same trigger")
	} else {
		notes = append(notes, "rows that old code inserts stay with the legacy worker until the next repetition; "+
			"--forward hands them on at once")
	}
	if a.options.Next == models.NextDifference {
		notes = append(notes, "a newer version of a document that is posted already posts the difference to what "+
			a.entries.Name+" says")
	} else {
		notes = append(notes, "a newer version of a document that is posted already waits for a person (POSTED_ELSEWHERE)")
	}
	if a.options.Source != "" {
		notes = append(notes, "the source "+a.options.Source+" is put on record for the organizations that have rows")
	}
	return notes
}

// orgs are the organizations that were asked for, never nil.
func (a *Accounting) orgs() []string { return append([]string{}, a.options.Orgs...) }

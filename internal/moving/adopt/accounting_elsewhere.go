package adopt

import (
	"cmp"
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// elsewhere is what the legacy system has posted of a document.
type elsewhere struct {
	// version is the newest that is posted.
	version int64
	next    models.NextPosting
	// entries are nil when they are not known.
	entries  []models.EntryElsewhere
	postedOn time.Time
}

// byKey are the positions of the jobs in the order (organization, document), in which rows of
// Daybook's queue are locked.
func byKey(jobs []legacyJob) []int {
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(strings.Compare(jobs[x].org, jobs[y].org), strings.Compare(jobs[x].document, jobs[y].document))
	})
	return order
}

// findElsewhere says of each job what the legacy system has posted of its document. What it is not
// sure of waits for a person, so that nothing is posted twice.
func (a *Accounting) findElsewhere(ctx context.Context, q store.Querier, jobs []legacyJob, problems *Problems) error {
	ledger, err := a.readEntries(ctx, q, jobs)
	if err != nil {
		return err
	}
	flags, err := a.readFlags(ctx, q, jobs)
	if err != nil {
		return err
	}
	for i := range jobs {
		j := &jobs[i]
		e := &elsewhere{version: j.version, next: a.options.Next, postedOn: j.updatedAt}
		if j.state != "completed" {
			e.version-- // what is posted is of some version before the one that is asked for
		}
		flag, flagged := flags[j.document+"\x00"+j.org]
		found := ledger[j.document+"\x00"+j.org]
		code, detail := "", ""
		switch {
		case a.entries != nil && found != nil:
			if code, detail = found.problem(); code == "" {
				e.entries = found.entries()
				if !found.postedOn.IsZero() {
					e.postedOn = found.postedOn
				}
			}
			if code == "" && len(e.entries) == 0 && j.state != "completed" {
				continue // posted and taken back
			}
		case j.state == "completed" && a.entries != nil:
			code, detail = "NO_ENTRIES", "the row is completed, and "+a.entries.Name+
				" has no entries of its document: its next version waits for a person"
		case j.state == "completed":
		case a.entries != nil, flagged && !flag, !flagged && j.version <= 1:
			continue // nothing of it is posted
		case flagged:
			code, detail = "EARLIER_POSTED", "the document's flag says that an earlier version is posted, and its entries "+
				"are not known: the version that is asked for waits for a person"
		default:
			code, detail = "EARLIER_UNKNOWN", "whether an earlier version is posted is not known: the version that is "+
				"asked for waits for a person; --entries or --documents says it"
		}
		if code != "" {
			problems.Add(code, detail, j.org+"/"+j.id)
		}
		if e.entries == nil {
			e.next = models.NextWait
		}
		j.elsewhere = e
	}
	return nil
}

// legacyEntries are the net amounts of one document in the legacy ledger, by account and currency.
type legacyEntries struct {
	nets     []netEntry
	strange  bool
	postedOn time.Time
}

type netEntry struct {
	account, currency string
	net               *big.Int
}

// problem says why the entries cannot be mirrored.
func (l *legacyEntries) problem() (code, detail string) {
	sums := map[string]*big.Int{}
	for _, n := range l.nets {
		if sums[n.currency] == nil {
			sums[n.currency] = new(big.Int)
		}
		sums[n.currency].Add(sums[n.currency], n.net)
		if !n.net.IsInt64() || n.net.CmpAbs(big.NewInt(1<<62)) > 0 {
			l.strange = true
		}
	}
	if l.strange {
		return "ENTRIES_INVALID", "an entry has no account, no side debit or credit, no currency of three letters, or an " +
			"amount that is no whole number of minor units: the document waits for a person"
	}
	for _, sum := range sums {
		if sum.Sign() != 0 {
			return "ENTRIES_UNBALANCED",
				"debits and credits of the document's entries differ: the document waits for a person"
		}
	}
	return "", ""
}

// entries are those whose net is not zero; never nil.
func (l *legacyEntries) entries() []models.EntryElsewhere {
	list := []models.EntryElsewhere{}
	for _, n := range l.nets {
		switch e := (models.EntryElsewhere{Account: n.account, Currency: n.currency}); n.net.Sign() {
		case 1:
			e.Side, e.Amount = models.Debit, n.net.Int64()
			list = append(list, e)
		case -1:
			e.Side, e.Amount = models.Credit, new(big.Int).Neg(n.net).Int64()
			list = append(list, e)
		}
	}
	return list
}

// netStatement sums the legacy ledger up by document, account and currency.
func (a *Accounting) netStatement() string {
	postedOn := "NULL::date"
	if a.entries.Has("posting_date") {
		postedOn = "max(e.posting_date)::date"
	}
	return `
SELECT e.org_id::text, e.document_id::text, coalesce(e.account::text, ''), coalesce(e.currency::text, ''),
       coalesce(sum(CASE lower(e.side::text) WHEN 'debit' THEN e.amount WHEN 'credit' THEN -e.amount END), 0)::numeric::text,
       bool_or((lower(e.side::text) IN ('debit', 'credit') AND e.account::text <> '' AND e.currency::text ~ '^[A-Z]{3}$' AND e.amount = trunc(e.amount::numeric)) IS NOT TRUE),
       ` + postedOn + `
  FROM unnest($1::text[], $2::text[]) AS k (org, document)
  JOIN ` + a.entries.Name + ` e ON e.org_id::text = k.org AND e.document_id::text = k.document
 GROUP BY 1, 2, 3, 4
 ORDER BY 1, 2, 3, 4`
}

// readEntries reads what the legacy ledger holds of the jobs' documents, by
// "document\0organization".
func (a *Accounting) readEntries(ctx context.Context, q store.Querier,
	jobs []legacyJob,
) (map[string]*legacyEntries, error) {
	found := map[string]*legacyEntries{}
	if a.entries == nil {
		return found, nil
	}
	orgs, documents := keysOf(jobs)
	var org, document, account, currency, net string
	var strange bool
	var postedOn *time.Time
	err := store.Each(ctx, q, []any{&org, &document, &account, &currency, &net, &strange, &postedOn}, func() error {
		key := document + "\x00" + org
		if found[key] == nil {
			found[key] = &legacyEntries{}
		}
		l := found[key]
		whole, _, _ := strings.Cut(net, ".") // what is behind it is zero, or strange
		n, ok := new(big.Int).SetString(whole, 10)
		if !ok {
			n, strange = new(big.Int), true
		}
		l.nets, l.strange = append(l.nets, netEntry{account, currency, n}), l.strange || strange
		if postedOn != nil && postedOn.After(l.postedOn) {
			l.postedOn = *postedOn
		}
		return nil
	}, a.netStatement(), orgs, documents)
	return found, store.Wrap("read "+a.entries.Name, err)
}

// readFlags reads whether the documents say that something is posted of them, by
// "document\0organization".
func (a *Accounting) readFlags(ctx context.Context, q store.Querier, jobs []legacyJob) (map[string]bool, error) {
	flags := map[string]bool{}
	if a.documents == nil || a.entries != nil || !a.documents.Has("accounting_impact_created_at") {
		return flags, nil
	}
	id, org := "id", "k.org"
	if !a.documents.Has("id") {
		id = "document_id"
	}
	if a.documents.Has("org_id") {
		org = "d.org_id::text"
	}
	stmt := `
SELECT k.org, k.document, d.accounting_impact_created_at IS NOT NULL
  FROM unnest($1::text[], $2::text[]) AS k (org, document)
  JOIN ` + a.documents.Name + ` d ON d.` + id + `::text = k.document AND ` + org + ` = k.org`
	orgs, documents := keysOf(jobs)
	var o, d string
	var posted bool
	err := store.Each(ctx, q, []any{&o, &d, &posted}, func() error {
		flags[d+"\x00"+o] = posted
		return nil
	}, stmt, orgs, documents)
	return flags, store.Wrap("read "+a.documents.Name, err)
}

func keysOf(jobs []legacyJob) (orgs, documents []string) {
	for i := range jobs {
		orgs, documents = append(orgs, jobs[i].org), append(documents, jobs[i].document)
	}
	return orgs, documents
}

// recordElsewhere puts on record what the legacy system has posted, in the transaction that adopts
// the rows.
func recordElsewhere(ctx context.Context, tx pgx.Tx, system string, jobs []legacyJob) error {
	const stmt = `
INSERT INTO daybook.posted_elsewhere AS p (org_id, document_id, document_version, next, entries, posted_on, system)
SELECT k.*, @system FROM unnest(@orgs::text[], @documents::text[], @versions::bigint[], @nexts::text[], @entries::jsonb[], @posted::date[]) AS k
ON CONFLICT (org_id, document_id) DO UPDATE
   SET document_version = greatest(p.document_version, excluded.document_version), next = excluded.next, entries = excluded.entries,
       posted_on = excluded.posted_on, system = excluded.system, updated_at = clock_timestamp()`
	var orgs, documents, nexts []string
	var versions []int64
	var entries []*string
	var posted []time.Time
	for i := range jobs {
		j := &jobs[i]
		if j.elsewhere == nil {
			continue
		}
		orgs, documents, nexts = append(orgs, j.org), append(documents, j.document), append(nexts, string(j.elsewhere.next))
		versions, posted = append(versions, j.elsewhere.version),
			append(posted, j.elsewhere.postedOn.UTC().Truncate(24*time.Hour))
		var list *string
		if j.elsewhere.entries != nil {
			text, err := json.Marshal(j.elsewhere.entries)
			if err != nil {
				return err
			}
			list = new(string(text))
		}
		entries = append(entries, list)
	}
	_, err := tx.Exec(ctx, stmt, store.Args{
		"system": system, "orgs": orgs, "documents": documents, "versions": versions, "nexts": nexts, "entries": entries,
		"posted": posted,
	})
	return store.Wrap("record what is posted elsewhere", err)
}

// postDifferences sees to documents that Daybook had posted in full before it was known that they
// are posted elsewhere as well.
func postDifferences(ctx context.Context, tx pgx.Tx, jobs []legacyJob, problems *Problems) error {
	const posted = `SELECT EXISTS (SELECT FROM daybook.impacts WHERE org_id = $1 AND document_id = $2)`
	for _, i := range byKey(jobs) {
		j := &jobs[i]
		if j.inserted || j.elsewhere == nil {
			continue
		}
		var there bool
		if err := tx.QueryRow(ctx, posted, j.org, j.document).Scan(&there); err != nil {
			return store.Wrap("read impacts", err)
		}
		if !there {
			continue
		}
		if j.elsewhere.next == models.NextDifference {
			problems.Add("POSTED_IN_BOTH",
				"Daybook had posted the document already: it is posted anew, as the difference to what is posted elsewhere",
				j.org+"/"+j.id)
			if _, err := store.RepostAccountingJob(ctx, tx, j.org, j.document); err != nil {
				return err
			}
			continue
		}
		problems.Add("POSTED_TWICE", "both systems have posted the document: decide by `daybook accounting elsewhere`",
			j.org+"/"+j.id)
	}
	return nil
}

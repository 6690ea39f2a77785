// Package export writes the ledger in formats that other programs read: journals of hledger, Ledger
// and Beancount, and CSV.
//
// The bytes depend on nothing but what is exported: not on the moment, the machine, or where the
// database keeps its rows.
package export

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// Format is a file format.
type Format string

// The formats.
const (
	HLedger   Format = "hledger"
	Ledger    Format = "ledger"
	Beancount Format = "beancount"
	CSV       Format = "csv"
)

// Formats lists the formats.
func Formats() []Format { return []Format{HLedger, Ledger, Beancount, CSV} }

// Errors of an export.
var (
	// ErrOptions: the options contradict each other; the message says how.
	ErrOptions = failure.New(failure.Invalid, "the export's options do not fit together")
	// ErrNoAccount: an account that has entries is no longer in its organization's chart; add it
	// again.
	ErrNoAccount = failure.New(failure.Failure, "an account with entries is not in the chart")
)

// Options says how to write.
type Options struct {
	// Format is required.
	Format Format
	// Organizations says that the file holds several organizations, each of which then has accounts
	// of its own.
	Organizations bool
	// Assertions adds the balance of each account and currency, as the database sums it up, for the
	// reading program to compare with its own. ErrOptions with CSV, which has no assertions.
	Assertions bool
	// Spreadsheet has CSV keep spreadsheets from taking a text for a formula: one that begins like a
	// formula has an apostrophe before it. Without it values are written as they are. The other
	// formats do not change.
	Spreadsheet bool
}

// Check refuses options that do not fit together or the filter, with ErrOptions.
func (o Options) Check(f ledgerdb.ExportFilter) error {
	switch {
	case !slices.Contains(Formats(), o.Format):
		return fmt.Errorf("%w: format %q: want %s", ErrOptions, o.Format, phrase.Or(Formats()))
	case o.Assertions && o.Format == CSV:
		return fmt.Errorf("%w: CSV has no assertions", ErrOptions)
	case o.Assertions && !f.From.IsZero():
		return fmt.Errorf("%w: a file that begins in the middle of the ledger has other balances than the ledger, so "+
			"assertions need one from the beginning", ErrOptions)
	case !f.From.IsZero() && !f.To.IsZero() && f.To.Time().Before(f.From.Time()):
		return fmt.Errorf("%w: %s is before %s", ErrOptions, f.To, f.From)
	}
	return nil
}

// Counts is what was written.
type Counts struct {
	// Impacts counts the impacts with entries, Empty those without.
	Impacts int64 `json:"impacts"`
	Empty   int64 `json:"impacts_without_entries"`
	Entries int64 `json:"entries"`
}

// writer writes one format. Writes are buffered: an error of the output shows at the end.
type writer interface {
	// head writes what comes before the impacts.
	head(ctx context.Context, r *ledgerdb.ExportReader, h *head) error
	// impact writes an impact with at least one entry.
	impact(m *ledgerdb.ExportImpact) error
	// empty notes an impact without entries.
	empty(m *ledgerdb.ExportImpact)
	// assert writes the balances as they must be after the last impact.
	assert(h *head) error
}

// head is what is known before the first impact.
type head struct {
	accounts   []models.Account
	balances   []ledgerdb.ExportBalance
	currencies []string
	span       ledgerdb.ExportSpan
}

// Write writes what the reader selects to w. Memory holds the charts of accounts and one impact at
// a time.
func Write(ctx context.Context, r *ledgerdb.ExportReader, w io.Writer, o Options) (Counts, error) {
	var counts Counts
	h, err := readHead(ctx, r, o)
	if err != nil {
		return counts, err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	to := o.writer(out)
	if err := to.head(ctx, r, h); err != nil {
		return counts, err
	}
	err = r.Impacts(ctx, func(m *ledgerdb.ExportImpact) error {
		if len(m.Entries) == 0 {
			counts.Empty++
			to.empty(m)
			return nil
		}
		counts.Impacts++
		counts.Entries += int64(len(m.Entries))
		if err := to.impact(m); err != nil {
			return err
		}
		// A reader that has closed its end ends the export.
		_, err := out.Write(nil)
		return err
	})
	if err != nil {
		return counts, err
	}
	if o.Assertions {
		if err := to.assert(h); err != nil {
			return counts, err
		}
	}
	return counts, out.Flush()
}

func (o Options) writer(out *bufio.Writer) writer {
	names := newNames(o)
	switch o.Format {
	case Beancount:
		return &beancount{out: out, names: names}
	case CSV:
		return newTable(out, names, o.Spreadsheet)
	default:
		return &journal{out: out, names: names, format: o.Format, assertions: o.Assertions}
	}
}

func readHead(ctx context.Context, r *ledgerdb.ExportReader, o Options) (*head, error) {
	var h head
	var err error
	if h.accounts, err = r.Accounts(ctx); err != nil {
		return nil, err
	}
	if o.Format == CSV {
		return &h, nil
	}
	if h.span, err = r.Span(ctx); err != nil {
		return nil, err
	}
	h.span.First, h.span.Last = h.span.First.Nearest(), h.span.Last.Nearest()
	if h.balances, err = r.Balances(ctx); err != nil {
		return nil, err
	}
	for _, b := range h.balances {
		h.currencies = append(h.currencies, b.Currency)
	}
	slices.Sort(h.currencies)
	h.currencies = slices.Compact(h.currencies)
	return &h, nil
}

// party is the document's counterparty or, without one, the document's id.
func party(m *ledgerdb.ExportImpact) string { return cmp.Or(m.Counterparty, m.DocumentID) }

// signed is an entry's amount, a credit negative.
func signed(e *ledgerdb.ExportEntry) int64 {
	if e.Side == models.Credit {
		return -e.Amount
	}
	return e.Amount
}

package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// ImportLanes is how many transactions an import runs side by side.
	ImportLanes = 4
	// importBatch is how many documents a transaction writes at most: those that wait already, so
	// that a slow source does not hold back what it has handed over.
	importBatch = 50
)

func importCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "import",
		Short: "Write documents, mark them ready and enqueue them",
		Long: "Writes each document, marks it ready and enqueues it in one transaction. A document that is there already with the\n" +
			"same content is left alone, so an import can be repeated; one with other content gets a new version.\n" +
			"Documents of an organization that Daybook has nothing of are refused without --create.",
	}
	command.AddCommand(importCSVCommand(a), importGOBLCommand(a), importNDJSONCommand(a))
	return command
}

// ImportItem is a document on its way, or why there is none.
type ImportItem struct {
	// Source is where it comes from: a file, or a file and a line.
	Source   string
	Document models.Document
	// File and line are where it stands; line 0: the file has one document, or its name says where.
	File string
	line int
	// name is the organization's, if the source tells it.
	name string
}

// ImportProblem is a source that was not imported.
type ImportProblem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Code is why it cannot be posted; empty: the document cannot be read, or was not written.
	Code models.ErrorCode `json:"code,omitempty"`
}

// problemOf words an error, its code first.
func problemOf(source string, err error) ImportProblem {
	p := ImportProblem{Source: source, Reason: err.Error()}
	if failed, ok := errors.AsType[*posting.Error](err); ok {
		p.Code, p.Reason = failed.Code, string(failed.Code)+": "+failed.Error()
	}
	return p
}

// ImportResult counts what an import did.
type ImportResult struct {
	Inserted  int `json:"inserted"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	// Skipped are documents that cause no booking.
	Skipped []ImportProblem `json:"skipped"`
	Failed  []ImportProblem `json:"failed"`
	// SkippedRows are the rows of CSV files that the mapping leaves out; other formats have none.
	SkippedRows []importer.SkippedRows `json:"skipped_rows,omitempty"`
	// Twice are the numbers that other documents have as well; nil: there are none.
	Twice *numbersTwice `json:"numbers_twice,omitempty"`
}

func newImportResult() *ImportResult {
	return &ImportResult{Skipped: []ImportProblem{}, Failed: []ImportProblem{}}
}

// importer writes documents side by side, those of one id in their order.
type Importer struct {
	pool  *pgxpool.Pool
	admit *admission
	// done is called after each document.
	done func()

	mu sync.Mutex
	// known are the organizations that have been found or made, with their names; unknown: why
	// documents of others are refused.
	known   map[string]string
	unknown map[string]error
	// Create makes organizations known that the database has nothing of.
	Create bool
	Result *ImportResult
}

// NewImporter returns an importer that has imported nothing. done is called after each document.
func NewImporter(pool *pgxpool.Pool, done func()) *Importer {
	return &Importer{
		pool: pool, admit: newAdmission(pool), done: done, known: map[string]string{}, unknown: map[string]error{},
		Result: newImportResult(),
	}
}

// Run writes the documents that feed hands over. An error of one document is counted and the next
// one goes on; the error that run returns ended the import: the database is unavailable or the
// command was interrupted.
func (i *Importer) Run(ctx context.Context, feed func(context.Context, func(ImportItem) error) error) error {
	began, err := store.Now(ctx, i.pool)
	if err == nil {
		err = i.work(ctx, feed)
	}
	if err == nil {
		err = i.lookForNumbers(ctx, began)
	}
	return err
}

// work writes the documents that feed hands over, side by side.
func (i *Importer) work(ctx context.Context, feed func(context.Context, func(ImportItem) error) error) error {
	group, ctx := errgroup.WithContext(ctx)
	lanes := make([]chan ImportItem, ImportLanes)
	for n := range lanes {
		lanes[n] = make(chan ImportItem, importBatch)
		group.Go(func() error {
			for item := range lanes[n] {
				if err := i.Many(ctx, waiting(lanes[n], item)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		defer func() {
			for _, lane := range lanes {
				close(lane)
			}
		}()
		return feed(ctx, func(item ImportItem) error {
			switch err := i.admit.admit(ctx, &item); {
			case errors.Is(err, errSameDocument):
				i.skip(item.Source, err)
				return nil
			case errors.Is(err, importer.ErrInvalid):
				i.fail(item.Source, err)
				return nil
			case err != nil:
				return err
			}
			hash := fnv.New32a()
			_, _ = io.WriteString(hash, item.Document.OrgID+"\x00"+item.Document.ID)
			select {
			case lanes[hash.Sum32()%ImportLanes] <- item:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return group.Wait()
}

// waiting returns the item and those that can be had without waiting.
func waiting(lane <-chan ImportItem, item ImportItem) []ImportItem {
	items := []ImportItem{item}
	for len(items) < importBatch {
		select {
		case next, ok := <-lane:
			if !ok {
				return items
			}
			items = append(items, next)
		default:
			return items
		}
	}
	return items
}

// Many writes documents in one transaction. If that fails each gets a transaction of its own, so
// that one that cannot be written does not keep the others out.
func (i *Importer) Many(ctx context.Context, items []ImportItem) error {
	// Every writer of several documents locks them in this order. Those of one id stay in theirs.
	slices.SortStableFunc(items, func(a, b ImportItem) int {
		return cmp.Or(strings.Compare(a.Document.OrgID, b.Document.OrgID), strings.Compare(a.Document.ID, b.Document.ID))
	})
	puts, err := i.write(ctx, items)
	if err == nil {
		for n, put := range puts {
			i.counted(items[n], put, nil)
		}
		return nil
	}
	for _, item := range items {
		if err := i.one(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// one writes a document in a transaction of its own.
func (i *Importer) one(ctx context.Context, item ImportItem) error {
	puts, err := i.write(ctx, []ImportItem{item})
	// A right that the role lacks for one document it lacks for all.
	if err != nil && (ctx.Err() != nil || store.IsTransient(err) || store.IsForbidden(err)) {
		return fmt.Errorf("%s: %w", item.Source, err)
	}
	var put ledgerdb.PutResult
	if err == nil {
		put = puts[0]
	}
	i.counted(item, put, err)
	return nil
}

// counted records what became of a document.
func (i *Importer) counted(item ImportItem, put ledgerdb.PutResult, err error) {
	i.mu.Lock()
	switch {
	case err != nil:
		i.Result.Failed = append(i.Result.Failed, problemOf(item.Source, err))
	case put == ledgerdb.PutInserted:
		i.Result.Inserted++
	case put == ledgerdb.PutChanged:
		i.Result.Changed++
	default:
		i.Result.Unchanged++
	}
	i.mu.Unlock()
	i.done()
}

// write does what domain code does: each document with its readiness and its job, all of them in
// one transaction.
func (i *Importer) write(ctx context.Context, items []ImportItem) ([]ledgerdb.PutResult, error) {
	for _, item := range items {
		if err := i.makeKnown(ctx, item); err != nil {
			return nil, err
		}
	}
	puts := make([]ledgerdb.PutResult, len(items))
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) error {
		for n := range items {
			d := &items[n].Document
			var err error
			if puts[n], err = ledgerdb.PutDocument(ctx, tx, d); err != nil {
				return err
			}
			if puts[n] == ledgerdb.PutUnchanged {
				continue
			}
			if _, err = queue.MarkDocumentReady(ctx, tx, queue.Document{OrgID: d.OrgID, ID: d.ID}); err != nil {
				return err
			}
		}
		return nil
	})
	return puts, err
}

// makeKnown adds the document's organization once. One that the database has nothing of is refused
// unless create says otherwise. It has a transaction of its own: a worker locks documents before
// organizations, so no transaction may hold an organization while it writes a document.
func (i *Importer) makeKnown(ctx context.Context, item ImportItem) error {
	i.mu.Lock()
	name, ok := i.known[item.Document.OrgID]
	unknown := i.unknown[item.Document.OrgID]
	i.mu.Unlock()
	if ok && (item.name == "" || name == item.name) || unknown != nil {
		return unknown
	}
	if !ok && !i.Create {
		if err := i.refuseUnknown(ctx, item.Document.OrgID); err != nil {
			return err
		}
	}
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) error {
		return store.PutOrganization(ctx, tx, item.Document.OrgID, item.name)
	})
	if err == nil {
		i.mu.Lock()
		i.known[item.Document.OrgID] = item.name
		i.mu.Unlock()
	}
	return err
}

// refuseUnknown refuses an organization of which the database has nothing, and remembers that.
func (i *Importer) refuseUnknown(ctx context.Context, org string) error {
	never, err := store.NeverHeardOf(ctx, i.pool, org)
	if err != nil || !never {
		return err
	}
	err = cli.UnknownOrganization(ctx, i.pool, true, org)
	i.mu.Lock()
	i.unknown[org] = err
	i.mu.Unlock()
	return err
}

// skip and fail count sources that led to no document.
func (i *Importer) skip(source string, err error) { i.count(&i.Result.Skipped, source, err) }

func (i *Importer) fail(source string, err error) { i.count(&i.Result.Failed, source, err) }

func (i *Importer) count(list *[]ImportProblem, source string, err error) {
	i.mu.Lock()
	*list = append(*list, problemOf(source, err))
	i.mu.Unlock()
	i.done()
}

// showImport prints the result, also of an import that ended early with an error. An import of
// which a part failed is an error, so that programs notice.
func showImport(a *cli.App, r *ImportResult, ended error) error {
	err := a.Emit(r, func(w io.Writer) error {
		if err := printProblems(w, "skipped", r.Skipped); err != nil {
			return err
		}
		if err := printProblems(w, "failed", r.Failed); err != nil {
			return err
		}
		for _, s := range r.SkippedRows {
			if _, err := fmt.Fprintf(w, "csv.skip  %s: %s left out, the first in line %d\n",
				s.Source, phrase.Plural(int64(s.Rows), "row", "rows"), s.FirstLine); err != nil {
				return err
			}
		}
		if r.Twice != nil {
			if err := r.Twice.print(w); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(w, "%d new, %d changed, %d unchanged, %d skipped, %d failed\n",
			r.Inserted, r.Changed, r.Unchanged, len(r.Skipped), len(r.Failed))
		return err
	})
	if ended != nil {
		return ended
	}
	if err == nil && len(r.Failed) > 0 {
		return cli.Tagged(errPartlyFailed, "%s failed: correct and import again; what is there already stays as it is",
			phrase.Plural(int64(len(r.Failed)), "document", "documents"))
	}
	return err
}

func printProblems(w io.Writer, what string, problems []ImportProblem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", what, p.Source, terminal.OneLine(p.Reason)); err != nil {
			return err
		}
	}
	return nil
}

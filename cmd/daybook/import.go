package main

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
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// importLanes is how many transactions an import runs side by side.
	importLanes = 4
	// importBatch is how many documents a transaction writes at most: those that wait already, so that a slow source does not
	// hold back what it has handed over.
	importBatch = 50
)

func importCommand(a *app) *cobra.Command {
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

// importItem is a document on its way, or why there is none.
type importItem struct {
	// source is where it comes from: a file, or a file and a line.
	source   string
	document models.Document
	// file and line are where it stands; line 0: the file has one document, or its name says where.
	file string
	line int
	// name is the organization's, if the source tells it.
	name string
}

// importProblem is a source that was not imported.
type importProblem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Code is why it cannot be posted; empty: the document cannot be read, or was not written.
	Code models.ErrorCode `json:"code,omitempty"`
}

// problemOf words an error, its code first.
func problemOf(source string, err error) importProblem {
	p := importProblem{Source: source, Reason: err.Error()}
	if failed, ok := errors.AsType[*posting.Error](err); ok {
		p.Code, p.Reason = failed.Code, string(failed.Code)+": "+failed.Error()
	}
	return p
}

// importResult counts what an import did.
type importResult struct {
	Inserted  int `json:"inserted"`
	Changed   int `json:"changed"`
	Unchanged int `json:"unchanged"`
	// Skipped are documents that cause no booking.
	Skipped []importProblem `json:"skipped"`
	Failed  []importProblem `json:"failed"`
	// SkippedRows are the rows of CSV files that the mapping leaves out; other formats have none.
	SkippedRows []importer.SkippedRows `json:"skipped_rows,omitempty"`
	// Twice are the numbers that other documents have as well; nil: there are none.
	Twice *numbersTwice `json:"numbers_twice,omitempty"`
}

func newImportResult() *importResult {
	return &importResult{Skipped: []importProblem{}, Failed: []importProblem{}}
}

// importer writes documents side by side, those of one id in their order.
type documentImporter struct {
	pool  *pgxpool.Pool
	admit *admission
	// done is called after each document.
	done func()

	mu sync.Mutex
	// known are the organizations that have been found or made, with their names; unknown: why documents of others are refused.
	known   map[string]string
	unknown map[string]error
	// create makes organizations known that the database has nothing of.
	create bool
	result *importResult
}

func newDocumentImporter(pool *pgxpool.Pool, done func()) *documentImporter {
	return &documentImporter{
		pool: pool, admit: newAdmission(pool), done: done, known: map[string]string{}, unknown: map[string]error{},
		result: newImportResult(),
	}
}

// run writes the documents that feed hands over. An error of one document is counted and the next one goes on; the error
// that run returns ended the import: the database is unavailable or the command was interrupted.
func (i *documentImporter) run(ctx context.Context, feed func(context.Context, func(importItem) error) error) error {
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
func (i *documentImporter) work(ctx context.Context, feed func(context.Context, func(importItem) error) error) error {
	group, ctx := errgroup.WithContext(ctx)
	lanes := make([]chan importItem, importLanes)
	for n := range lanes {
		lanes[n] = make(chan importItem, importBatch)
		group.Go(func() error {
			for item := range lanes[n] {
				if err := i.many(ctx, waiting(lanes[n], item)); err != nil {
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
		return feed(ctx, func(item importItem) error {
			switch err := i.admit.admit(ctx, &item); {
			case errors.Is(err, errSameDocument):
				i.skip(item.source, err)
				return nil
			case errors.Is(err, importer.ErrInvalid):
				i.fail(item.source, err)
				return nil
			case err != nil:
				return err
			}
			hash := fnv.New32a()
			_, _ = io.WriteString(hash, item.document.OrgID+"\x00"+item.document.ID)
			select {
			case lanes[hash.Sum32()%importLanes] <- item:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return group.Wait()
}

// waiting returns the item and those that can be had without waiting.
func waiting(lane <-chan importItem, item importItem) []importItem {
	items := []importItem{item}
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

// many writes documents in one transaction. If that fails each gets a transaction of its own, so that one that cannot be
// written does not keep the others out.
func (i *documentImporter) many(ctx context.Context, items []importItem) error {
	// Every writer of several documents locks them in this order. Those of one id stay in theirs.
	slices.SortStableFunc(items, func(a, b importItem) int {
		return cmp.Or(strings.Compare(a.document.OrgID, b.document.OrgID), strings.Compare(a.document.ID, b.document.ID))
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
func (i *documentImporter) one(ctx context.Context, item importItem) error {
	puts, err := i.write(ctx, []importItem{item})
	// A right that the role lacks for one document it lacks for all.
	if err != nil && (ctx.Err() != nil || store.IsTransient(err) || store.IsForbidden(err)) {
		return fmt.Errorf("%s: %w", item.source, err)
	}
	var put ledgerdb.PutResult
	if err == nil {
		put = puts[0]
	}
	i.counted(item, put, err)
	return nil
}

// counted records what became of a document.
func (i *documentImporter) counted(item importItem, put ledgerdb.PutResult, err error) {
	i.mu.Lock()
	switch {
	case err != nil:
		i.result.Failed = append(i.result.Failed, problemOf(item.source, err))
	case put == ledgerdb.PutInserted:
		i.result.Inserted++
	case put == ledgerdb.PutChanged:
		i.result.Changed++
	default:
		i.result.Unchanged++
	}
	i.mu.Unlock()
	i.done()
}

// write does what domain code does: each document with its readiness and its job, all of them in one transaction.
func (i *documentImporter) write(ctx context.Context, items []importItem) ([]ledgerdb.PutResult, error) {
	for _, item := range items {
		if err := i.makeKnown(ctx, item); err != nil {
			return nil, err
		}
	}
	puts := make([]ledgerdb.PutResult, len(items))
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) error {
		for n := range items {
			d := &items[n].document
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

// makeKnown adds the document's organization once. One that the database has nothing of is refused unless create says
// otherwise. It has a transaction of its own: a worker locks documents before
// organizations, so no transaction may hold an organization while it writes a document.
func (i *documentImporter) makeKnown(ctx context.Context, item importItem) error {
	i.mu.Lock()
	name, ok := i.known[item.document.OrgID]
	unknown := i.unknown[item.document.OrgID]
	i.mu.Unlock()
	if ok && (item.name == "" || name == item.name) || unknown != nil {
		return unknown
	}
	if !ok && !i.create {
		if err := i.refuseUnknown(ctx, item.document.OrgID); err != nil {
			return err
		}
	}
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) error {
		return store.PutOrganization(ctx, tx, item.document.OrgID, item.name)
	})
	if err == nil {
		i.mu.Lock()
		i.known[item.document.OrgID] = item.name
		i.mu.Unlock()
	}
	return err
}

// refuseUnknown refuses an organization of which the database has nothing, and remembers that.
func (i *documentImporter) refuseUnknown(ctx context.Context, org string) error {
	never, err := store.NeverHeardOf(ctx, i.pool, org)
	if err != nil || !never {
		return err
	}
	err = unknownOrganization(ctx, i.pool, true, org)
	i.mu.Lock()
	i.unknown[org] = err
	i.mu.Unlock()
	return err
}

// skip and fail count sources that led to no document.
func (i *documentImporter) skip(source string, err error) { i.count(&i.result.Skipped, source, err) }
func (i *documentImporter) fail(source string, err error) { i.count(&i.result.Failed, source, err) }

func (i *documentImporter) count(list *[]importProblem, source string, err error) {
	i.mu.Lock()
	*list = append(*list, problemOf(source, err))
	i.mu.Unlock()
	i.done()
}

// showImport prints the result, also of an import that ended early with an error. An import of which a part failed is an error, so that programs
// notice.
func (a *app) showImport(r *importResult, ended error) error {
	err := a.emit(r, func(w io.Writer) error {
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
		return tagged(errPartlyFailed, "%s failed: correct and import again; what is there already stays as it is", phrase.Plural(int64(len(r.Failed)), "document", "documents"))
	}
	return err
}

func printProblems(w io.Writer, what string, problems []importProblem) error {
	for _, p := range problems {
		if _, err := fmt.Fprintf(w, "%s  %s: %s\n", what, p.Source, terminal.OneLine(p.Reason)); err != nil {
			return err
		}
	}
	return nil
}

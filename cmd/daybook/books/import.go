package books

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// ImportWriters is how many transactions an import runs side by side.
	ImportWriters = 4
	// importBatch and importBytes bound what a transaction writes: the documents, and the bytes of
	// their contents unless it is one document.
	importBatch = 500
	importBytes = 512 << 10
	// importWait is how long a document waits for others, so that a slow source does not hold back
	// what it has handed over.
	importWait = 50 * time.Millisecond
)

func importCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "import",
		Short: "Write documents, mark them ready and enqueue them",
		Long: "Writes each document, marks it ready and enqueues it in one transaction. A document that is there already with the\n" +
			"same content is left alone, so an import can be repeated; one with other content gets a new version.\n" +
			"Documents of an organization that Daybook has nothing of are refused without --create.\n" +
			"Each import has an id, by which `daybook import undo` takes it back.",
	}
	command.AddCommand(importCSVCommand(a), importFilesCommand(a, GOBL), importFilesCommand(a, ubl),
		importFilesCommand(a, cii), importFilesCommand(a, facturX), importStatementsCommand(a, camt),
		importStatementsCommand(a, mt940), importNDJSONCommand(a), importHLedgerCommand(a), importOpeningCommand(a), importListCommand(a),
		importUndoCommand(a))
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
	// text is the document's content as it is stored; empty until it is encoded.
	text string
	// standsFor is the document of another system that an open item stands for; empty: none.
	standsFor string
}

// Importer writes documents side by side, many in a transaction.
type Importer struct {
	pool  *pgxpool.Pool
	admit *admission
	// done is called after each document.
	done func()
	// gathering is held by the writer that takes the documents of its next transaction.
	gathering sync.Mutex

	mu sync.Mutex
	// known are the organizations that have been found or made, with their names; unknown: why
	// documents of others are refused.
	known   map[string]string
	unknown map[string]error
	// records are the imports that are on record, by organization; recording is held while one is
	// made.
	records   map[string]*models.Import
	recording sync.Mutex
	// Format and Files are what is imported, for the record.
	Format string
	Files  []string
	// Create makes organizations known that the database has nothing of.
	Create bool
	Result *ImportResult
}

// NewImporter returns an importer that has imported nothing. done is called after each document.
func NewImporter(pool *pgxpool.Pool, done func()) *Importer {
	return &Importer{
		pool: pool, admit: newAdmission(pool), done: done, known: map[string]string{}, unknown: map[string]error{},
		records: map[string]*models.Import{}, Format: "other", Result: newImportResult(),
	}
}

// importFlags are the flags that all formats have.
type importFlags struct {
	dryRun bool
	// check is asked before anything is read; nil: there is nothing to check.
	check func(context.Context, *pgxpool.Pool) error
}

func (f *importFlags) add(a *cli.App, command *cobra.Command) {
	a.CreateFlag(command)
	command.Flags().BoolVar(&f.dryRun, "dry-run", false, "write nothing, and show what would be posted and what would fail")
}

// apply has an importer do as the flags say, with what it imports for the record.
func (f *importFlags) apply(a *cli.App, i *Importer, format string, files ...string) {
	i.Create, i.Format, i.Files = a.Create, format, files
	if f.dryRun {
		i.Result.Trial = &importTrial{Accounts: []accountSum{}, Documents: []trialDocument{}, Failing: []ImportProblem{}, sums: map[accountKey]*sides{}}
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
	if i.Result.Trial != nil {
		i.Result.Trial.finish()
		return err
	}
	if ended := i.endRecords(ctx); err == nil {
		err = ended
	}
	if err == nil {
		err = i.lookForNumbers(ctx, began)
	}
	return err
}

// work writes the documents that feed hands over, side by side.
func (i *Importer) work(ctx context.Context, feed func(context.Context, func(ImportItem) error) error) error {
	group, ctx := errgroup.WithContext(ctx)
	admitted := make(chan ImportItem)
	for range ImportWriters {
		group.Go(func() error {
			for {
				items := i.gather(admitted)
				if len(items) == 0 {
					return nil
				}
				if err := i.Many(ctx, items); err != nil {
					return err
				}
			}
		})
	}
	group.Go(func() error {
		defer close(admitted)
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
			select {
			case admitted <- item:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	return group.Wait()
}

// gather takes the documents of a transaction; none: there are no more.
func (i *Importer) gather(admitted <-chan ImportItem) []ImportItem {
	i.gathering.Lock()
	defer i.gathering.Unlock()
	item, ok := <-admitted
	late := time.After(importWait)
	var items []ImportItem
	for bytes := 0; ok; {
		items = append(items, item)
		if bytes += len(item.text); len(items) == importBatch || bytes >= importBytes {
			break
		}
		select {
		case item, ok = <-admitted:
		case <-late:
			ok = false
		}
	}
	return items
}

// Many writes documents in one transaction. If that fails each half gets a transaction of its own,
// so that one that cannot be written does not keep the others out.
func (i *Importer) Many(ctx context.Context, items []ImportItem) error {
	// Every writer of several documents locks them in this order.
	slices.SortStableFunc(items, func(a, b ImportItem) int {
		return cmp.Or(strings.Compare(a.Document.OrgID, b.Document.OrgID), strings.Compare(a.Document.ID, b.Document.ID))
	})
	known := make([]ImportItem, 0, len(items))
	for _, item := range items {
		err := i.makeKnown(ctx, item)
		if err == nil {
			err = i.record(ctx, &item)
		}
		switch {
		case err == nil:
			known = append(known, item)
		case endsImport(ctx, err):
			return fmt.Errorf("%s: %w", item.Source, err)
		default:
			i.counted(item, "", err)
		}
	}
	return i.parts(ctx, known)
}

// parts writes sorted documents in one transaction, or in halves.
func (i *Importer) parts(ctx context.Context, items []ImportItem) error {
	if len(items) == 0 {
		return nil
	}
	puts, err := i.write(ctx, items)
	switch {
	case err == nil:
		for n, put := range puts {
			i.counted(items[n], put.Result, nil)
		}
		return nil
	case len(items) > 1:
		half := len(items) / 2
		if err := i.parts(ctx, items[:half]); err != nil {
			return err
		}
		return i.parts(ctx, items[half:])
	case endsImport(ctx, err):
		return fmt.Errorf("%s: %w", items[0].Source, err)
	}
	i.counted(items[0], "", err)
	return nil
}

// endsImport reports whether what is wrong with one document is wrong with all: a right that the
// role lacks for one it lacks for all.
func endsImport(ctx context.Context, err error) bool {
	return ctx.Err() != nil || store.IsTransient(err) || store.IsForbidden(err) || errors.Is(err, ledgerdb.ErrImportUndone)
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
	if on := i.records[item.Document.OrgID]; on != nil && err == nil {
		countPut(on, put)
	}
	i.mu.Unlock()
	i.done()
}

// write does what domain code does: it writes the documents, marks them ready and enqueues them, all
// in one transaction.
func (i *Importer) write(ctx context.Context, items []ImportItem) ([]ledgerdb.Put, error) {
	docs := make([]ledgerdb.NewDocument, len(items))
	for n := range items {
		if err := items[n].encode(); err != nil {
			return nil, err
		}
		docs[n] = ledgerdb.NewDocument{Document: &items[n].Document, Text: items[n].text}
	}
	if i.Result.Trial != nil {
		return i.try(ctx, items, docs)
	}
	var puts []ledgerdb.Put
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) (err error) {
		if err = store.PlanByKey(ctx, tx); err != nil {
			return err
		}
		if puts, err = ledgerdb.PutImported(ctx, tx, docs); err != nil {
			return err
		}
		if err = standFor(ctx, tx, items); err != nil {
			return err
		}
		var jobs []queue.AccountingJob
		for n, put := range puts {
			if put.Result != ledgerdb.PutUnchanged {
				jobs = append(jobs, queue.AccountingJob{OrgID: docs[n].OrgID, DocumentID: docs[n].ID, Version: put.Version})
			}
		}
		_, err = queue.EnqueueAccountingJobs(ctx, tx, jobs)
		return err
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
	var err error
	if i.Result.Trial == nil {
		err = store.Begin(ctx, i.pool, func(tx pgx.Tx) error {
			return store.PutOrganization(ctx, tx, item.Document.OrgID, item.name)
		})
	}
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

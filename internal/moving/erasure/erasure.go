// Package erasure erases the data of a person or an organization: jobs, what other tables have of
// them, what is personal in documents, errors, the log of actions and the archive. The ledger keeps
// its entries. What was erased, what was kept and why is on record, as a proof.
//
// Each batch commits with its counts. An erasure that ended before its end is done by another one,
// which finds what is left.
package erasure

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
)

// Options say how to erase.
type Options struct {
	// Actor is who asks for it, Ground why; both are on record.
	Actor, Ground string
	// Archive is the archive, in which is erased as well; nil: there is none, or the proof says that
	// it was left out.
	Archive *archive.Archive
	// Wait is how long jobs that are being worked are waited for; 0: they are not.
	Wait time.Duration
	// Batch is how many rows a transaction erases; default 1000.
	Batch int
	// DryRun counts what would be erased, and changes nothing.
	DryRun bool
}

// eraser is one erasure.
type eraser struct {
	pool  *pgxpool.Pool
	scope store.EraseScope
	o     Options
	id    string
	// total is what was erased, by table; open counts documents that are still to be posted.
	total map[string]int64
	open  int64
	// dry is the transaction of a dry run.
	dry pgx.Tx
}

// errDry ends the transaction of a dry run.
var errDry = errors.New("a dry run")

// Hash is the hash of a scope by which a proof names it.
func Hash(salt []byte, s store.EraseScope) []byte {
	h := sha256.New()
	h.Write(salt)
	for _, part := range []string{s.OrgID, s.Kind, s.ID} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return h.Sum(nil)
}

// Erase erases, and returns the proof. Jobs that wait are cancelled first, those that are being
// worked after their attempt: when some are left at the end, the proof says how many, and another
// erasure finds them. With an error that ends it before its end it returns the proof of what it has
// erased until then, if that can be read. A dry run does the same in one transaction that is rolled
// back, and leaves nothing on record.
func Erase(ctx context.Context, pool *pgxpool.Pool, s store.EraseScope, o Options) (store.Erasure, error) {
	if o.Batch <= 0 {
		o.Batch = 1000
	}
	if !store.ValidText(s.OrgID + " " + s.Kind + " " + s.ID) {
		return store.Erasure{}, fmt.Errorf("what is to be erased: %w", store.ErrInvalidText)
	}
	e := &eraser{pool: pool, scope: s, o: o, total: map[string]int64{}}
	var proof store.Erasure
	var err error
	if !o.DryRun {
		proof, err = e.run(ctx)
	} else {
		err = store.Begin(ctx, pool, func(tx pgx.Tx) error {
			e.dry = tx
			if proof, err = e.run(ctx); err != nil {
				return err
			}
			return errDry
		})
		if errors.Is(err, errDry) {
			err = nil
		}
	}
	if err != nil && e.id != "" && !o.DryRun {
		err = fmt.Errorf("the erasure %s is not complete, erase again: %w", e.id, err)
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofLimit)
		defer cancel()
		if list, unread := store.Erasures(reading, pool, e.id, ""); unread == nil && len(list) > 0 {
			if proof = list[0]; proof.FinishedAt != nil {
				err = nil // only the answer to its last commit was lost
			}
		}
	}
	return proof, err
}

// proofLimit is how long the proof of an erasure that did not come to its end may take to be read.
const proofLimit = 5 * time.Second

// in runs f in a transaction of its own, or in that of the dry run.
func (e *eraser) in(ctx context.Context, f func(tx pgx.Tx) error) error {
	if e.dry != nil {
		return f(e.dry)
	}
	return store.Begin(ctx, e.pool, f)
}

// note adds to the proof what the transaction erases.
func (e *eraser) note(ctx context.Context, tx pgx.Tx, counts map[string]int64) error {
	for table, n := range counts {
		if n > 0 {
			e.total[table] += n
		}
	}
	return store.CountErased(ctx, tx, e.id, counts)
}

func (e *eraser) run(ctx context.Context) (store.Erasure, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt)
	err := e.in(ctx, func(tx pgx.Tx) (err error) {
		e.id, err = store.BeginErasure(ctx, tx, e.scope, e.o.Actor, e.o.Ground, salt, Hash(salt, e.scope))
		return err
	})
	if err != nil {
		return store.Erasure{}, err
	}
	left, err := e.jobs(ctx)
	if err != nil {
		return store.Erasure{}, err
	}
	if err := e.documents(ctx); err != nil {
		return store.Erasure{}, err
	}
	if e.o.Archive != nil {
		if err := e.archived(ctx); err != nil {
			return store.Erasure{}, err
		}
	}
	var proof store.Erasure
	err = e.in(ctx, func(tx pgx.Tx) error {
		kept, err := e.kept(ctx, tx)
		if err != nil {
			return err
		}
		if err := store.EndErasure(ctx, tx, e.id, kept, left); err != nil {
			return err
		}
		list, err := store.Erasures(ctx, tx, e.id, "")
		if err == nil {
			proof = list[0]
		}
		return err
	})
	return proof, err
}

// jobs cancels and erases until nothing is left, or the time to wait is over, and returns how many
// jobs are left.
func (e *eraser) jobs(ctx context.Context) (int64, error) {
	until := time.Now().Add(e.o.Wait)
	for {
		if err := e.cancel(ctx); err != nil {
			return 0, err
		}
		for _, step := range store.EraseSteps(e.scope) {
			if err := e.step(ctx, step); err != nil {
				return 0, err
			}
		}
		var left int64
		err := e.in(ctx, func(tx pgx.Tx) (err error) {
			left, err = store.OpenErased(ctx, tx, e.scope)
			return err
		})
		if err != nil || left == 0 || e.dry != nil || !time.Now().Before(until) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// cancel cancels the open jobs, but for those whose rows other transactions hold.
func (e *eraser) cancel(ctx context.Context) error {
	last := ""
	for {
		err := e.in(ctx, func(tx pgx.Tx) (err error) {
			last, err = store.CancelErased(ctx, tx, e.scope, last, e.o.Batch)
			return err
		})
		if err != nil || last == "" {
			return err
		}
	}
}

// step erases one kind of rows.
func (e *eraser) step(ctx context.Context, step store.EraseStep) error {
	last := ""
	for {
		err := e.in(ctx, func(tx pgx.Tx) (err error) {
			var counts map[string]int64
			if counts, last, err = step.Erase(ctx, tx, e.id, e.scope, last, e.o.Batch); err != nil {
				return err
			}
			return e.note(ctx, tx, counts)
		})
		if err != nil || last == "" {
			return err
		}
	}
}

// documents erases what is personal in documents.
func (e *eraser) documents(ctx context.Context) error {
	if e.scope.Kind != "" && e.scope.Document() == "" {
		return nil
	}
	behind := ""
	for {
		var d store.ErasedDocuments
		err := e.in(ctx, func(tx pgx.Tx) (err error) {
			if d, err = store.EraseDocuments(ctx, tx, e.scope, behind, e.o.Batch); err != nil {
				return err
			}
			return e.note(ctx, tx, d.Counts)
		})
		if err != nil || d.Looked == 0 {
			return err
		}
		behind = d.Behind
		e.open += d.Open
	}
}

// archived erases in the archive.
func (e *eraser) archived(ctx context.Context) error {
	counts, err := e.o.Archive.Erase(ctx, e.pool, e.scope, e.o.DryRun, e.note)
	if err != nil || !e.o.DryRun {
		return err
	}
	return e.note(ctx, e.dry, maps.Clone(counts))
}

// kept says what is not erased, and why.
func (e *eraser) kept(ctx context.Context, tx pgx.Tx) ([]store.Kept, error) {
	var kept []store.Kept
	if e.scope.Kind == "" || e.scope.Document() != "" {
		impacts, entries, err := store.KeptByLedger(ctx, tx, e.scope)
		if err != nil {
			return nil, err
		}
		if impacts > 0 {
			kept = append(kept,
				store.Kept{
					What: "impacts", Count: impacts,
					Reason: "the ledger is append-only: books must be kept; an impact has ids and dates, and no text of a person",
				},
				store.Kept{
					What: "entries", Count: entries,
					Reason: "the ledger is append-only: books must be kept; an entry has accounts and amounts",
				})
		}
		kept = append(kept, store.Kept{
			What: "documents", Count: e.total["documents"],
			Reason: "documents stay as vouchers of the ledger, with number, dates, codes, dimensions, amounts and taxes; their " +
				"other texts are erased",
		})
	}
	if e.open > 0 {
		kept = append(kept, store.Kept{
			What: "documents.attributes", Count: e.open,
			Reason: "these documents are still to be posted, and rules may ask for their attributes: erase again when they " +
				"are posted",
		})
	}
	if e.o.Archive == nil {
		files, err := store.Archives(ctx, tx, e.scope.OrgID)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			kept = append(kept, store.Kept{
				What: "archives", Count: int64(len(files)),
				Reason: "no archive was named: erase again with --archive",
			})
		}
	}
	return kept, nil
}

// About reports whether a proof is that of a scope.
func About(e store.Erasure, s store.EraseScope) bool {
	salt, err := hex.DecodeString(e.ScopeSalt)
	return err == nil && hex.EncodeToString(Hash(salt, s)) == e.ScopeHash
}

package source

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Key names a row: its organization and its own key.
type Key[K queue.DocumentKey] struct {
	OrgID string
	ID    K
}

// Functions reads documents by functions, such as those that sqlc generates. The functions run in
// the transaction that posts, and are given only keys that queue.ParseDocumentID accepts.
type Functions[K queue.DocumentKey] struct {
	// Namespace is that of the documents' ids (queue.DocumentID).
	Namespace string
	// Lock locks the rows that it can lock without waiting (FOR NO KEY UPDATE SKIP LOCKED), and
	// returns their keys in any order. Keys that were not asked for are left out.
	Lock func(ctx context.Context, tx pgx.Tx, keys []Key[K]) ([]Key[K], error)
	// Read reads the rows that there are, locked or not, with all that belongs to the documents. It
	// waits for no lock.
	Read func(ctx context.Context, tx pgx.Tx, keys []Key[K]) (map[Key[K]]Row, error)
	// SetPosted is told for each key whether the document is posted now. Nil: the table does not keep
	// that.
	SetPosted func(ctx context.Context, tx pgx.Tx, keys []Key[K], live []bool) error
}

func (f Functions[K]) namespace() string { return f.Namespace }

func (f Functions[K]) check() error {
	if f.Lock == nil || f.Read == nil {
		return errors.New("it needs Lock and Read")
	}
	return nil
}

// parse returns the row's key; false: the document is not of this table.
func (f Functions[K]) parse(k accounting.Key) (Key[K], bool) {
	document := k.ID
	if f.Namespace == "" {
		document = "-:" + document // the key alone
	}
	_, id, err := queue.ParseDocumentID[K](document)
	return Key[K]{k.OrgID, id}, err == nil
}

func (f Functions[K]) lockAndRead(ctx context.Context, tx pgx.Tx, c *call, positions []int) error {
	places := make(map[Key[K]]int, len(positions))
	asked := make([]Key[K], 0, len(positions))
	for _, p := range positions {
		if k, ok := f.parse(c.keys[p]); ok {
			places[k] = p
			asked = append(asked, k)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	locked, err := f.Lock(ctx, tx, asked)
	if err != nil {
		return err
	}
	got := make(map[Key[K]]bool, len(locked))
	for _, k := range locked {
		got[k] = true
	}
	var have, missing []Key[K]
	for _, k := range asked {
		if got[k] {
			have = append(have, k)
		} else {
			missing = append(missing, k)
		}
	}
	if err := f.read(ctx, tx, c, have, places); err != nil || len(missing) == 0 {
		return err
	}
	there, err := f.Read(ctx, tx, missing)
	for _, k := range missing {
		if _, ok := there[k]; ok {
			c.found[places[k]].State = accounting.Locked
		}
	}
	return err
}

// read reads rows that are locked, as many as there is room for.
func (f Functions[K]) read(ctx context.Context, tx pgx.Tx, c *call, keys []Key[K], places map[Key[K]]int) error {
	for len(keys) > 0 {
		if c.size > maxSize {
			for _, k := range keys {
				c.found[places[k]].State = accounting.Later
			}
			return nil
		}
		some := keys[:min(len(keys), readAtOnce)]
		keys = keys[len(some):]
		rows, err := f.Read(ctx, tx, some)
		if err != nil {
			return err
		}
		for _, k := range some {
			if row, ok := rows[k]; ok {
				c.answer(places[k], row)
			}
		}
	}
	return nil
}

// answer gives a key the answer that its row is.
func (c *call) answer(position int, r Row) {
	if r.DeletedAt != nil {
		c.found[position].State = accounting.Deleted
		return
	}
	found := accounting.Found{State: accounting.Here, Document: r.Document, Err: r.Err}
	d := found.Document
	if d == nil {
		d = new(models.Document)
		if r.Err == nil && r.ReadyAt != nil {
			found.Err = errors.New("Read returned the row without a document")
		}
	}
	d.OrgID, d.ID = c.keys[position].OrgID, c.keys[position].ID
	d.AccountingReadyVersion, d.AccountingReadyAt, d.DeletedAt = r.Version, r.ReadyAt, nil
	found.Document = d
	c.found[position] = found
	c.size += max(r.size, 1000+200*(len(d.Content.Lines)+len(d.Content.Taxes)))
}

func (f Functions[K]) setPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	if f.SetPosted == nil {
		return nil
	}
	var some []Key[K]
	var are []bool
	for i, k := range keys {
		if key, ok := f.parse(k); ok {
			some, are = append(some, key), append(are, live[i])
		}
	}
	if len(some) == 0 {
		return nil
	}
	return f.SetPosted(ctx, tx, some, are)
}

// Columns are the keys as a statement takes them: the organizations, and beside them the rows'
// keys.
func Columns[K queue.DocumentKey](keys []Key[K]) (orgs []string, ids []K) {
	orgs, ids = make([]string, len(keys)), make([]K, len(keys))
	for i, k := range keys {
		orgs[i], ids[i] = k.OrgID, k.ID
	}
	return orgs, ids
}

package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
	"github.com/daybook-dev/daybook/queue"
)

// SQL reads documents by whole SQL statements. Each is given the organizations as $1, a text[], and
// the rows' keys beside them as $2: a bigint[] for whole numbers, a uuid[] for [16]byte, otherwise
// a text[].
type SQL[K queue.DocumentKey] struct {
	// Namespace is that of the documents' ids (queue.DocumentID).
	Namespace string
	// Lock locks the rows that it can lock without waiting, and returns their positions in the
	// arrays, from 1, in a column of bigint:
	//
	//	SELECT k.n
	//	  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org_id, id, n)
	//	  JOIN invoices i ON i.org_id = k.org_id AND i.id = k.id
	//	   FOR NO KEY UPDATE OF i SKIP LOCKED
	Lock string
	// Read reads the rows that there are, locked or not, one for each document, in these columns,
	// which are matched by name and are all there are:
	//
	//	n           bigint       the position, as in Lock
	//	version     bigint       the document's version, as it is enqueued
	//	ready_at    timestamptz  when it became complete; null: it is not ready
	//	deleted_at  timestamptz  when it was deleted or voided; null: it is not
	//	document    jsonb        type, direction, currency, issue_date, value_date and content of a models.Document
	//
	// An unknown name in the document is an error, so that no amount is lost by a misspelt name: the
	// job fails with DOCUMENT_INVALID.
	Read string
	// SetPosted is told by $3, a boolean[], whether each document is posted now. Empty: the table
	// does not keep that.
	SetPosted string
}

func (s SQL[K]) namespace() string { return s.Namespace }

func (s SQL[K]) check() error {
	if s.Lock == "" || s.Read == "" {
		return errors.New("it needs Lock and Read")
	}
	return nil
}

func (s SQL[K]) functions() Functions[K] {
	f := Functions[K]{Namespace: s.Namespace, Lock: s.lock, Read: s.read}
	if s.SetPosted != "" {
		f.SetPosted = func(ctx context.Context, tx pgx.Tx, keys []Key[K], live []bool) error {
			orgs, ids := arrays(keys)
			_, err := tx.Exec(ctx, s.SetPosted, orgs, ids, live)
			return err
		}
	}
	return f
}

func (s SQL[K]) lockAndRead(ctx context.Context, tx pgx.Tx, c *call, positions []int) error {
	return s.functions().lockAndRead(ctx, tx, c, positions)
}

func (s SQL[K]) setPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	return s.functions().setPosted(ctx, tx, keys, live)
}

func (s SQL[K]) lock(ctx context.Context, tx pgx.Tx, keys []Key[K]) ([]Key[K], error) {
	orgs, ids := arrays(keys)
	rows, err := tx.Query(ctx, s.Lock, orgs, ids)
	if err != nil {
		return nil, fmt.Errorf("Lock: %w", err)
	}
	places, err := pgx.CollectRows(rows, checked(checkLock, pgx.RowTo[int64]))
	if err != nil {
		return nil, notScanned("Lock", err)
	}
	locked := make([]Key[K], len(places))
	for i, n := range places {
		if n < 1 || n > int64(len(keys)) {
			return nil, wrong("Lock: position %d of %d keys: it must return the positions of the arrays, from 1", n,
				len(keys))
		}
		locked[i] = keys[n-1]
	}
	return locked, nil
}

// readRow is what Read returns.
type readRow struct {
	N         int64
	Version   *int64
	ReadyAt   *time.Time
	DeletedAt *time.Time
	Document  []byte
}

func (s SQL[K]) read(ctx context.Context, tx pgx.Tx, keys []Key[K]) (map[Key[K]]Row, error) {
	orgs, ids := arrays(keys)
	answer, err := tx.Query(ctx, s.Read, orgs, ids)
	if err != nil {
		return nil, fmt.Errorf("Read: %w", err)
	}
	rows := make(map[Key[K]]Row, len(keys))
	read, err := pgx.CollectRows(answer, checked(checkRead, pgx.RowToStructByName[readRow]))
	if err != nil {
		return nil, notScanned("Read", err)
	}
	for _, r := range read {
		if r.N < 1 || r.N > int64(len(keys)) {
			return nil, wrong("Read: position %d of %d keys: it must return the positions of the arrays, from 1", r.N,
				len(keys))
		}
		key := keys[r.N-1]
		if _, twice := rows[key]; twice {
			return nil, wrong("Read: two rows for position %d: it must return one for each, so join the lines in a subquery",
				r.N)
		}
		rows[key] = r.row()
	}
	return rows, nil
}

// row is a row without its position.
func (r readRow) row() Row {
	row := Row{ReadyAt: r.ReadyAt, DeletedAt: r.DeletedAt, size: len(r.Document)}
	switch {
	case r.Version == nil:
		row.Err = errors.New("the column version of Read is null: each document has a version, as it is enqueued")
	case r.Document != nil || r.ReadyAt != nil: // one that is not ready need have no document
		row.Version = *r.Version
		row.Document, row.Err = decode(r.Document)
	default:
		row.Version = *r.Version
	}
	return row
}

// checked reads rows whose columns are what they must be.
func checked[T any](check func([]pgconn.FieldDescription) error, scan pgx.RowToFunc[T]) pgx.RowToFunc[T] {
	known := false
	return func(row pgx.CollectableRow) (v T, err error) {
		if !known {
			if err := check(row.FieldDescriptions()); err != nil {
				return v, err
			}
			known = true
		}
		return scan(row)
	}
}

// document are the fields of a models.Document that Read returns.
type document struct {
	Type      models.DocumentType `json:"type"`
	Direction models.Direction    `json:"direction"`
	Currency  string              `json:"currency"`
	IssueDate models.Date         `json:"issue_date"`
	ValueDate *models.Date        `json:"value_date"`
	Content   models.Content      `json:"content"`
}

func decode(text []byte) (*models.Document, error) {
	if text == nil {
		return &models.Document{}, errors.New("document: it is null")
	}
	var d document
	if err := strictjson.Document(text, &d, &d.Content); err != nil {
		return &models.Document{}, fmt.Errorf("document: %w", err)
	}
	return &models.Document{
		Type: d.Type, Direction: d.Direction, Currency: d.Currency, IssueDate: d.IssueDate, ValueDate: d.ValueDate,
		Content: d.Content,
	}, nil
}

// arrays are the keys as a statement gets them.
func arrays[K queue.DocumentKey](keys []Key[K]) (orgs []string, ids any) {
	orgs = make([]string, len(keys))
	var numbers []int64
	var texts []string
	var uuids []pgtype.UUID
	for i, k := range keys {
		orgs[i] = k.OrgID
		switch v := reflect.ValueOf(k.ID); v.Kind() {
		case reflect.String:
			texts = append(texts, v.String())
		case reflect.Array:
			u := pgtype.UUID{Valid: true}
			reflect.Copy(reflect.ValueOf(&u.Bytes).Elem(), v)
			uuids = append(uuids, u)
		default:
			numbers = append(numbers, v.Int())
		}
	}
	switch {
	case uuids != nil:
		return orgs, uuids
	case texts != nil:
		return orgs, texts
	default:
		return orgs, numbers
	}
}

package source

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
)

const (
	// readAtOnce is how many documents are read by one call of Read.
	readAtOnce = 50
	// maxSize bounds the documents of one call of LockAndRead, in bytes and roughly.
	maxSize = 2 << 20
)

// Table reads one type of document. It is an SQL or a Functions.
type Table interface {
	check() error
	// try makes the table's statements without a key, and says what is wrong with them.
	try(ctx context.Context, tx pgx.Tx) error
	namespace() string
	// lockAndRead fills in the answers for the positions. It takes from budget what it reads, and
	// answers Later when that is used up.
	lockAndRead(ctx context.Context, tx pgx.Tx, c *call, positions []int) error
	setPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error
}

// Row is a document as its table has it now.
type Row struct {
	// Version is the document's, as it is enqueued: queue.AccountingJob.Version.
	Version int64
	// ReadyAt is when the document became complete; nil: it is not ready, and what is posted of it is
	// reversed.
	ReadyAt *time.Time
	// DeletedAt is when it was deleted or voided; nil: it is not. What is posted of it is reversed
	// for good.
	DeletedAt *time.Time
	// Document is what the rules read. OrgID, ID and the fields above are filled in.
	Document *models.Document
	// Err says why the row is no document: its job fails with DOCUMENT_INVALID.
	Err error

	size int
}

// call is one call of LockAndRead.
type call struct {
	keys  []accounting.Key
	found []accounting.Found
	size  int
}

// source is several tables.
type source []Table

// New returns a source of the documents of the tables, each of which has a namespace of its own.
// One table alone may have none: its documents' ids are its keys.
//
// Errors: a table without a Lock or Read, a namespace that another table has or that is none.
func New(tables ...Table) (accounting.Source, error) {
	if len(tables) == 0 {
		return nil, fmt.Errorf("source: there is no table: name those that have documents")
	}
	known := map[string]bool{}
	for i, t := range tables {
		if t == nil {
			return nil, fmt.Errorf("source: table %d is nil: leave it out", i+1)
		}
		name := t.namespace()
		switch err := t.check(); {
		case err != nil:
			return nil, fmt.Errorf("source: table %q: %w", name, err)
		case strings.Contains(name, ":"):
			return nil, fmt.Errorf("source: the namespace %q must not have a colon", name)
		case name == "" && len(tables) > 1:
			return nil, fmt.Errorf("source: a table without a namespace must be the only one: give each type of document a " +
				"namespace, such as invoice")
		case known[name]:
			return nil, fmt.Errorf("source: two tables have the namespace %q", name)
		}
		known[name] = true
	}
	return source(tables), nil
}

// LockAndRead implements accounting.Source.
func (s source) LockAndRead(ctx context.Context, tx pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	c := &call{keys: keys, found: make([]accounting.Found, len(keys))}
	for i := range c.found {
		c.found[i].State = accounting.Unknown
	}
	// The first key's table comes first: Later may not be its answer.
	tables, positions := s.split(keys)
	for _, t := range tables {
		if err := t.lockAndRead(ctx, tx, c, positions[t.namespace()]); err != nil {
			return nil, fmt.Errorf("documents of %q: %w", t.namespace(), err)
		}
	}
	return c.found, nil
}

// SetPosted implements accounting.Source.
func (s source) SetPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	tables, positions := s.split(keys)
	for _, t := range tables {
		var some []accounting.Key
		var are []bool
		for _, p := range positions[t.namespace()] {
			some, are = append(some, keys[p]), append(are, live[p])
		}
		if err := t.setPosted(ctx, tx, some, are); err != nil {
			return fmt.Errorf("documents of %q: %w", t.namespace(), err)
		}
	}
	return nil
}

// split returns the tables that keys belong to, in the order of their first keys, and the positions
// of each one's keys.
func (s source) split(keys []accounting.Key) (tables []Table, positions map[string][]int) {
	byName := map[string]Table{}
	for _, t := range s {
		byName[t.namespace()] = t
	}
	positions = map[string][]int{}
	for i, k := range keys {
		name := ""
		if byName[""] == nil {
			name, _, _ = strings.Cut(k.ID, ":")
		}
		t := byName[name]
		if t == nil {
			continue
		}
		if positions[name] == nil {
			tables = append(tables, t)
		}
		positions[name] = append(positions[name], i)
	}
	return tables, positions
}

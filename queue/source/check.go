package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daybook-dev/daybook/accounting"
)

// Check implements accounting.Checker: it prepares the statements of each table, looks at the names
// and types of their columns, and makes Lock and Read without a key. Functions are not called: what
// they do without a key is not said.
func (s source) Check(ctx context.Context, tx pgx.Tx) error {
	for _, t := range s {
		if err := t.try(ctx, tx); err != nil {
			return fmt.Errorf("documents of %q: %w", t.namespace(), err)
		}
	}
	return nil
}

var _ accounting.Checker = source{}

func (f Functions[K]) try(context.Context, pgx.Tx) error { return nil }

func (s SQL[K]) try(ctx context.Context, tx pgx.Tx) error {
	const keys = "the organizations as $1 and the keys as $2"
	for _, stmt := range []struct {
		name, sql  string
		parameters int
		given      string
		columns    func([]pgconn.FieldDescription) error
	}{
		{"Lock", s.Lock, 2, keys, checkLock},
		{"Read", s.Read, 2, keys, checkRead},
		{
			"SetPosted", s.SetPosted, 3, keys + ", and whether each is posted as $3",
			func([]pgconn.FieldDescription) error { return nil },
		},
	} {
		if stmt.sql == "" {
			continue
		}
		described, err := tx.Prepare(ctx, "", stmt.sql)
		if err != nil {
			return fmt.Errorf("%s: %w", stmt.name, err)
		}
		if n := len(described.ParamOIDs); n != stmt.parameters {
			return wrong("%s: it has %d parameters, and is given %s: it must use each", stmt.name, n, stmt.given)
		}
		if err := stmt.columns(described.Fields); err != nil {
			return err
		}
	}
	if _, err := s.lock(ctx, tx, nil); err != nil {
		return err
	}
	_, err := s.read(ctx, tx, nil)
	return err
}

// notScanned is the error of a row that cannot be read as the columns promise.
func notScanned(statement string, err error) error {
	if _, ok := errors.AsType[pgx.ScanArgError](err); ok {
		return wrong("%s: %v", statement, err)
	}
	return fmt.Errorf("%s: %w", statement, err)
}

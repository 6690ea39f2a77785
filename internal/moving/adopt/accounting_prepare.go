package adopt

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// The triggers on a legacy queue.
const (
	guardTrigger   = "daybook_forward_changed"
	forwardTrigger = "daybook_forward_inserted"
)

// Prepare implements Adopter: the triggers are put on the table, and the organizations and their
// source on record.
func (a *Accounting) Prepare(ctx context.Context) ([]string, error) {
	var notes []string
	made, err := a.makeTrigger(ctx, guardTrigger, fmt.Sprintf(`
CREATE TRIGGER %s AFTER UPDATE ON %s FOR EACH ROW
  WHEN (NEW.state = 'pending' OR NEW.version_hint > OLD.version_hint OR NEW.state = 'completed' AND OLD.state <> 'completed')
  EXECUTE FUNCTION daybook.forward_accounting_request()`, guardTrigger, a.table.Name))
	if err != nil {
		return nil, err
	}
	if made {
		notes = append(notes, "the trigger "+guardTrigger+" is on "+a.table.Name)
	}
	if a.options.Forward {
		made, err := a.makeTrigger(ctx, forwardTrigger, fmt.Sprintf(`
CREATE TRIGGER %s AFTER INSERT ON %s FOR EACH ROW WHEN (NEW.state = 'pending')
  EXECUTE FUNCTION daybook.forward_accounting_request('forward')`, forwardTrigger, a.table.Name))
		if err != nil {
			return notes, err
		}
		if made {
			notes = append(notes, "the trigger "+forwardTrigger+" is on "+a.table.Name)
		}
	}
	if err := a.knowOrganizations(ctx); err != nil {
		return notes, err
	}
	read, err := a.readLater(ctx)
	if read > 0 {
		notes = append(notes, fmt.Sprintf("documents posted elsewhere whose entries are on record now, and were not: %d",
			read))
	}
	return notes, err
}

// shortLock has a statement give up its wait for a lock soon, because all later writers of the
// table wait behind it.
const shortLock = `SET LOCAL lock_timeout = '1s'`

// makeTrigger puts a trigger on the table, unless it is there.
func (a *Accounting) makeTrigger(ctx context.Context, name, stmt string) (bool, error) {
	return again(ctx, func() (made bool, err error) {
		err = store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
			if err := Lock(ctx, tx, a.table.Name); err != nil {
				return err
			}
			there, err := a.hasTrigger(ctx, tx, name)
			if err != nil || there {
				return err
			}
			made = true
			_, err = tx.Exec(ctx, shortLock+";"+stmt)
			return err
		})
		return made, store.Wrap("put a trigger on "+a.table.Name, err)
	})
}

func (a *Accounting) hasTrigger(ctx context.Context, q store.Querier, name string) (there bool, err error) {
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = $1::regclass AND tgname = $2 AND NOT tgisinternal)`, a.table.Name, name).Scan(&there)
	return there, err
}

// dropTrigger takes a trigger off the table, if it is there.
func (a *Accounting) dropTrigger(ctx context.Context, name string) (bool, error) {
	return again(ctx, func() (gone bool, err error) {
		err = store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
			if gone, err = a.hasTrigger(ctx, tx, name); err != nil || !gone {
				return err
			}
			_, err := tx.Exec(ctx, shortLock+`; DROP TRIGGER IF EXISTS `+name+` ON `+a.table.Name)
			return err
		})
		return gone, store.Wrap("take a trigger off "+a.table.Name, err)
	})
}

// knowOrganizations makes the organizations known to Daybook, and puts their source on record. Each
// has a transaction of its own: a worker locks documents before organizations.
func (a *Accounting) knowOrganizations(ctx context.Context) error {
	stmt := `
SELECT DISTINCT l.org_id::text FROM ` + a.table.Name + ` l
 WHERE coalesce(octet_length(l.org_id::text), 0) BETWEEN 1 AND 255 AND (cardinality($1::text[]) = 0 OR l.org_id::text = ANY ($1))`
	orgs, err := store.Collect(ctx, a.pool, pgx.RowTo[string], stmt, a.orgs())
	if err != nil {
		return store.Wrap("list the organizations", err)
	}
	slices.Sort(orgs)
	for _, org := range orgs {
		err := store.Begin(ctx, a.pool, func(tx pgx.Tx) error {
			if err := store.PutOrganization(ctx, tx, org, ""); err != nil || a.options.Source == "" {
				return err
			}
			_, err := store.SetSource(ctx, tx, org, a.options.Source)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// parseChecksum reads a sum of hashes, which may be negative, as a Checksum.
func parseChecksum(sum string) (Checksum, error) {
	n, ok := new(big.Int).SetString(sum, 10)
	if !ok {
		return 0, fmt.Errorf("the checksum %q is no number", sum)
	}
	n.Mod(n, new(big.Int).Lsh(big.NewInt(1), 64))
	return Checksum(n.Uint64()), nil
}

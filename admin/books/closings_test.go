package books_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

// posted has an invoice of a day posted.
func (b *bundle) posted(id string, day models.Date) {
	b.t.Helper()
	d := fixture.Invoice(org, id, 1000)
	d.IssueDate = day
	fixture.Ready(b.t, b.Pool, d)
	b.work()
}

func (b *bundle) closings() []models.Closing {
	b.t.Helper()
	list, err := books.Closings(b.t.Context(), b.Pool, org, books.ClosingOptions{})
	require.NoError(b.t, err)
	return list
}

// differences are the findings of the audit about closings.
func (b *bundle) differences(key ed25519.PublicKey) []string {
	b.t.Helper()
	r, err := audit.Run(b.t.Context(), b.Pool, audit.Options{ClosingKey: key})
	require.NoError(b.t, err)
	found := []string{}
	for _, c := range r.Checks {
		if c.Kind == "closing_hash_differs" || c.Kind == "closing_not_signed" {
			for _, f := range c.Findings {
				found = append(found, f.Detail)
			}
		}
	}
	return found
}

// findings are all that the audit finds.
func (b *bundle) findings() (found []string) {
	b.t.Helper()
	r, err := audit.Run(b.t.Context(), b.Pool, audit.Options{})
	require.NoError(b.t, err)
	for _, c := range r.Checks {
		for _, f := range c.Findings {
			found = append(found, c.Kind+": "+f.Detail)
		}
	}
	return found
}

// Each closing and opening continues the chain, also one by SQL, and says which days it closed.
func TestClosingsFormAChain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 1), books.Month(2026, 3), books.Month(2026, 4), books.Month(2026, 7)))
	b.posted("early", models.NewDate(2025, 12, 31))
	b.posted("march", models.NewDate(2026, 3, 31))
	b.posted("april", models.NewDate(2026, 4, 1))
	assert.Empty(t, b.closings())

	c, err := books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{})
	require.NoError(t, err)
	require.NotNil(t, c.Closing)
	assert.Equal(t, "{[1900-01-01,2026-01-01),[2026-02-01,2026-04-01)}", c.Closing.Days, "January is open")
	assert.Equal(t, [3]int64{2, 6, 3}, [3]int64{c.Closing.Impacts, c.Closing.Entries, c.Closing.LastImpactID})
	assert.Empty(t, c.Closing.PreviousHash)

	// By SQL, two at once: each has a row of its own.
	_, err = b.Pool.Exec(ctx,
		`UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp() WHERE starts_on IN ('2026-01-01', '2026-04-01')`)
	require.NoError(t, err)
	// The one that ends a gap closes it.
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 6)))
	o, err := books.OpenPeriod(ctx, b.Pool, org, books.Month(2026, 3), books.OpenOptions{})
	require.NoError(t, err)
	assert.Equal(t, models.ActionOpened, o.Closing.Action)
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{})))
	c, err = books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{})
	require.NoError(t, err)
	assert.Nil(t, c.Closing, "nothing was changed")
	_, err = b.Pool.Exec(ctx, `DELETE FROM daybook.periods WHERE starts_on = '2026-01-01'`)
	require.NoError(t, err)

	var shown []string
	previous := ""
	for i, c := range b.closings() {
		shown = append(shown, fmt.Sprintf("%s %s %s %s %d", c.Action, c.StartsOn, c.EndsOn, c.Days, c.Impacts))
		assert.Equal(t, i+1, c.Number)
		assert.Equal(t, previous, c.PreviousHash)
		previous = c.Hash
	}
	assert.Equal(t, []string{
		"closed 2026-03-01 2026-03-31 {[1900-01-01,2026-01-01),[2026-02-01,2026-04-01)} 2",
		"closed 2026-01-01 2026-01-31 {[2026-01-01,2026-02-01)} 0",
		"closed 2026-04-01 2026-04-30 {[2026-04-01,2026-07-01)} 1",
		"opened 2026-06-01 2026-06-30 {[2026-06-01,2026-07-01)} 0",
		"opened 2026-03-01 2026-03-31 {[2026-03-01,2026-04-01)} 1",
		"closed 2026-03-01 2026-03-31 {[2026-03-01,2026-04-01)} 1",
	}, shown, "a period that is deleted, and whose days stay closed, is no opening")
	assert.Empty(t, b.differences(nil))
}

// A month that was closed before anything was posted at all: the very first impact comes later.
func TestClosingBeforeTheFirstImpact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	march := books.Month(2026, 3)
	require.NoError(t, addPeriods(ctx, b.Pool, org, march))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, march, books.CloseOptions{})))
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, march, books.OpenOptions{})))
	b.posted("first", models.NewDate(2026, 3, 31))
	assert.Empty(t, b.differences(nil))
}

// damages are changes of a column's value, by its type.
var damages = map[string]string{
	"text": "reverse(%[1]s || 'x')", "bigint": "coalesce(%[1]s, 0) + 1000000", "integer": "coalesce(%[1]s, 0) + 1000000", "date": "%[1]s + 1",
	"bytea": "sha256(coalesce(%[1]s, ''))", "timestamp with time zone": "%[1]s + interval '1 microsecond'",
	"jsonb": `coalesce(%[1]s, '{}') || '{"project": "x"}'`, "USER-DEFINED": "(enum_range(NULL::%[2]s))[3 - array_position(enum_range(NULL::%[2]s), %[1]s)]",
}

// damaged are the statements that change one column of a row, or remove the row.
func (b *bundle) damaged(table string) []string {
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT column_name, data_type, udt_schema || '.' || udt_name FROM information_schema.columns
 WHERE table_schema = 'daybook' AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`, table)
	require.NoError(b.t, err)
	stmts := []string{`DELETE FROM daybook.` + table}
	var column, kind, enum string
	_, err = pgx.ForEachRow(rows, []any{&column, &kind, &enum}, func() error {
		require.Contains(b.t, damages, kind)
		stmts = append(stmts, fmt.Sprintf("UPDATE daybook.%s SET %s = %s", table, column, fmt.Sprintf(damages[kind]+"%[3]s", column, enum, "")))
		return nil
	})
	require.NoError(b.t, err)
	return stmts
}

// Whatever the owner of the database changes of what is closed, with all guards taken off, is found:
// each column of each impact and entry, and rows that are gone or new.
func TestEachChangeOfWhatIsClosedIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Year(2026)...))
	for day := 1; day <= 28; day += 9 {
		b.posted(fmt.Sprintf("jan-%d", day), models.NewDate(2026, 1, day))
		b.posted(fmt.Sprintf("feb-%d", day), models.NewDate(2026, 2, day))
	}
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "jan-1", 2000)) // it is posted in January and reversed
	b.work()
	for _, m := range []time.Month{1, 2, 3} {
		require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, m), books.CloseOptions{})))
	}
	require.NoError(t, second(books.OpenPeriod(ctx, b.Pool, org, books.Month(2026, 2), books.OpenOptions{})))
	b.posted("feb-late", models.NewDate(2026, 2, 3))
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 2), books.CloseOptions{})))
	require.Empty(t, b.differences(nil))

	stmts := append(b.damaged("impacts"), b.damaged("entries")...)
	rapid.Check(t, func(r *rapid.T) {
		stmt := rapid.SampledFrom(stmts).Draw(r, "change")
		row := rapid.IntRange(0, 1000).Draw(r, "row")
		fixture.Tx(b.t, b.Pool, func(ctx context.Context, outer pgx.Tx) {
			tx, err := outer.Begin(ctx)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback(ctx)) }()
			_, err = tx.Exec(ctx, unguarded)
			require.NoError(t, err)
			table := "impacts"
			if strings.Contains(stmt, "daybook.entries") {
				table = "entries"
			}
			tag, err := tx.Exec(ctx, stmt+` WHERE ctid = (SELECT ctid FROM daybook.`+table+` ORDER BY ctid LIMIT 1 OFFSET $1 % (SELECT count(*) FROM daybook.`+table+`))`, row)
			require.NoError(t, err, stmt)
			require.EqualValues(t, 1, tag.RowsAffected())
			var n int
			require.NoError(t, tx.QueryRow(ctx, `SELECT count(*) FROM daybook.closing_differences($1)`, org).Scan(&n))
			require.Positive(t, n, "%s, row %d", stmt, row)
		})
	})
}

// unguarded takes off what keeps even the owner from changing the ledger.
const unguarded = `
ALTER TABLE daybook.impacts DISABLE TRIGGER USER;
ALTER TABLE daybook.entries DISABLE TRIGGER USER;
DROP INDEX daybook.impacts_once;
DO $$
DECLARE c record;
BEGIN
    FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint
              WHERE conrelid IN ('daybook.impacts'::regclass, 'daybook.entries'::regclass) AND contype IN ('c', 'u') LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname);
    END LOOP;
END
$$`

// So is what is added to closed days, also under an id that was left free before the closing, and
// backdated.
func TestWhatIsAddedToClosedDaysIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Month(2026, 3)))
	b.posted("march", models.NewDate(2026, 3, 3))
	_, err := b.Pool.Exec(ctx, `SELECT setval('daybook.impact_id_seq', 10)`)
	require.NoError(t, err)
	require.NoError(t, second(books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, 3), books.CloseOptions{})))
	for id, found := range map[int]string{
		5:  "what was closed from 2026-03-01 to 2026-03-31 (closing 1) was changed: 1 impacts and 3 entries then, 2 and 3 now",
		11: "posted on 2026-03-01 after closing 1",
	} {
		fixture.Tx(t, b.Pool, func(ctx context.Context, outer pgx.Tx) {
			tx, err := outer.Begin(ctx)
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback(ctx)) }()
			_, err = tx.Exec(ctx, unguarded)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, `
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt, created_at)
VALUES ($1, $2, 'added', 1, 1, 'post', '2026-03-01', '2026-03-01', 0, 'job', 1, '2020-01-01')`, id, org)
			require.NoError(t, err)
			var detail string
			require.NoError(t, tx.QueryRow(ctx, `SELECT string_agg(detail, '; ') FROM daybook.closing_differences('')`).Scan(&detail))
			assert.Equal(t, found, detail)
		})
	}
}

// The chain itself cannot be changed unseen: a row, its end, or the periods without a row.
func TestChangesOfTheChainAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	require.NoError(t, addPeriods(ctx, b.Pool, org, books.Year(2026)...))
	for _, m := range []time.Month{1, 2, 3} {
		c, err := books.ClosePeriod(ctx, b.Pool, org, books.Month(2026, m), books.CloseOptions{Key: private})
		require.NoError(t, err)
		require.True(t, c.Closing.SignedBy(public))
		assert.Equal(t, models.ClosingKeyID(public), c.Closing.KeyID)
	}
	require.Empty(t, b.differences(public))
	for _, stmt := range []string{
		`UPDATE daybook.closings SET closed_by = 'x'`, `UPDATE daybook.closings SET signature = NULL, key_id = NULL`,
		`DELETE FROM daybook.closings`, `TRUNCATE daybook.closings`,
	} {
		_, err := b.Pool.Exec(ctx, stmt)
		require.Equal(t, "DB004", store.SQLState(err), stmt)
	}
	other, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	assert.Len(t, b.differences(other), 3, "they are not of that key")

	for stmt, found := range map[string][]string{
		`UPDATE daybook.closings SET closed_by = 'x' WHERE number = 2`:                 {"closing 2 is not as it was written"},
		`UPDATE daybook.closings SET list = '[]' WHERE number = 3`:                     {},
		`UPDATE daybook.closings SET list = '[1]' WHERE number = 3`:                    {"closing 3 is not as it was written"},
		`DELETE FROM daybook.closings WHERE number = 2`:                                {"closing 3 does not continue closing 1"},
		`UPDATE daybook.closings SET signature = NULL, key_id = NULL WHERE number = 2`: {},
		`UPDATE daybook.closings SET signature = NULL, key_id = NULL WHERE number = 3`: {
			"closing 3, from 2026-03-01 to 2026-03-31: neither it nor a later one is signed by the key",
		},
		`UPDATE daybook.closings SET signature = sha512('') WHERE number = 3`: {
			"closing 3, from 2026-03-01 to 2026-03-31: its signature, of the key " + models.ClosingKeyID(public) +
				", is not one of the key " + models.ClosingKeyID(public) + " and of this closing",
		},
		`DELETE FROM daybook.closings WHERE number = 3`: {
			"the days that are closed are {[1900-01-01,2026-04-01)}, and those of the last closing are {[1900-01-01,2026-03-01)}",
		},
		`DELETE FROM daybook.closings`: {
			"the days that are closed are {[1900-01-01,2026-04-01)}, and those of the last closing are {}",
		},
		`UPDATE daybook.periods SET state = 'open', closed_at = NULL WHERE starts_on = '2026-02-01'`: {
			"the days that are closed are {[1900-01-01,2026-02-01),[2026-03-01,2026-04-01)}, and those of the last closing are {[1900-01-01,2026-04-01)}",
		},
	} {
		const keep = `CREATE TABLE kept_closings AS TABLE daybook.closings; CREATE TABLE kept_periods AS TABLE daybook.periods;
ALTER TABLE daybook.closings DISABLE TRIGGER USER; ALTER TABLE daybook.periods DISABLE TRIGGER USER;`
		_, err := b.Pool.Exec(ctx, keep+stmt)
		require.NoError(t, err, stmt)
		assert.Equal(t, found, b.differences(public), stmt)
		_, err = b.Pool.Exec(ctx, `
DELETE FROM daybook.closings; INSERT INTO daybook.closings TABLE kept_closings; DELETE FROM daybook.periods; INSERT INTO daybook.periods TABLE kept_periods;
DROP TABLE kept_closings, kept_periods; ALTER TABLE daybook.closings ENABLE TRIGGER USER; ALTER TABLE daybook.periods ENABLE TRIGGER USER`)
		require.NoError(t, err)
	}
	require.Empty(t, b.differences(public))
}

// Whatever periods are added, closed, opened and removed, the list is about the days that the
// closing then closes, and what the chain says is true.
func TestDaysToCloseAreThoseThatAClosingCloses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		org := fmt.Sprintf("org_%d", n)
		fixture.Organization(t, b.Pool, org)
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			m := books.Month(2026, time.Month(rapid.IntRange(1, 6).Draw(r, "month")))
			var want *string
			require.NoError(t, b.Pool.QueryRow(ctx, `SELECT daybook.days_to_close($1, $2)::text`, org, m.StartsOn.Time()).Scan(&want))
			switch rapid.IntRange(0, 3).Draw(r, "step") {
			case 0:
				require.NoError(t, addPeriods(ctx, b.Pool, org, m))
			case 1:
				c, err := books.ClosePeriod(ctx, b.Pool, org, m, books.CloseOptions{})
				if want == nil {
					require.ErrorIs(t, err, books.ErrPeriodNotFound)
				} else if require.NoError(t, err); c.Changed {
					require.Equal(t, *want, c.Closing.Days)
				}
			case 2:
				if _, err := books.OpenPeriod(ctx, b.Pool, org, m, books.OpenOptions{}); want == nil {
					require.ErrorIs(t, err, books.ErrPeriodNotFound)
				} else {
					require.NoError(t, err)
				}
			case 3:
				_, err := b.Pool.Exec(ctx, `DELETE FROM daybook.periods WHERE org_id = $1 AND starts_on = $2`, org, m.StartsOn.Time())
				require.NoError(t, err)
			}
		}
		rows, err := b.Pool.Query(ctx, `SELECT detail FROM daybook.closing_differences($1)`, org)
		require.NoError(t, err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Empty(t, found)
	})
}

// The order of postings and closings is that of ids and numbers: a clock that was ahead when
// something was posted, and was set back before its month was closed, changes nothing.
func TestTheChainDependsOnNoClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, addPeriods(t.Context(), b.Pool, org, books.Month(2026, 3)))
	b.posted("march", models.NewDate(2026, 3, 3))
	_, err := b.Pool.Exec(t.Context(), `
ALTER TABLE daybook.impacts DISABLE TRIGGER USER;
UPDATE daybook.impacts SET created_at = created_at + interval '1 hour';
ALTER TABLE daybook.impacts ENABLE TRIGGER USER`)
	require.NoError(t, err)
	require.NoError(t, second(books.ClosePeriod(t.Context(), b.Pool, org, books.Month(2026, 3), books.CloseOptions{})))
	r, err := audit.Run(t.Context(), b.Pool, audit.Options{})
	require.NoError(t, err)
	for _, c := range r.Checks {
		assert.Empty(t, c.Findings, c.Kind)
	}
}

package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/queue"
)

// partBeside is the part of the scenario jobs that runs only when it is named.
const partBeside = "beside"

// postNested writes each row of a job in a subtransaction that Daybook does not see.
const postNested = `
CREATE FUNCTION post_nested(job bigint, net bigint, tax bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE line record;
BEGIN
    FOR line IN SELECT * FROM (VALUES ('1200', net + tax), ('4400', -net), ('3800', -tax)) v (account, amount) LOOP
        BEGIN
            INSERT INTO ledger (job, account, amount, currency) VALUES (post_nested.job, line.account, line.amount, 'EUR');
        EXCEPTION WHEN unique_violation THEN RAISE;
        END;
    END LOOP;
END $$`

// besideReaders is how many sessions count the tables.
const besideReaders = 2

// besideSession is what goes on beside a worker.
type besideSession struct {
	name  string
	begin func(ctx context.Context, d *database) (end func(), err error)
}

// besideSessions are those that subtransactions may cost something.
func besideSessions() []besideSession {
	return []besideSession{
		{"alone", func(context.Context, *database) (func(), error) { return func() {}, nil }},
		{"beside a held snapshot", openSnapshot},
		{"beside readers", countTables},
	}
}

// openSnapshot takes a snapshot before the first job begins, and holds it.
func openSnapshot(ctx context.Context, d *database) (end func(), err error) {
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	end = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) } // its session ends anyway
	if _, err = tx.Exec(ctx, `SELECT FROM pg_class LIMIT 1`); err != nil {
		end()
	}
	return end, err
}

// countTables counts what is written all the time.
func countTables(ctx context.Context, d *database) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	for range besideReaders {
		reading.Go(func() {
			for ctx.Err() == nil {
				// What fails is read again: the session is not what is measured.
				_, _ = d.pool.Exec(ctx, `SELECT (SELECT count(*) FROM ledger), (SELECT count(*) FROM daybook.jobs)`)
			}
		})
	}
	return func() { cancel(); reading.Wait() }, nil
}

// besideRows are the rates of n jobs in shared transactions as parts of those in transactions of
// their own.
func (b *bench) besideRows(ctx context.Context, n, runs int) ([]report.Row, error) {
	var rows []report.Row
	for _, beside := range besideSessions() {
		for _, nested := range []bool{false, true} {
			name := "shared transactions, " + beside.name
			if nested {
				name += ", more than 64 subtransactions"
			}
			job := func(i int) benchJob {
				j := newBenchJob(i)
				j.Nested = nested
				return j
			}
			drain := func(of string, payload func(int) queue.Payload) side {
				return side{n: n, drain: func(ctx context.Context) (drained, error) {
					return b.drainBeside(ctx, name+", "+of, organizations(), n, 3, payload,
						func(ctx context.Context, d *database) (func(), error) {
							if _, err := d.pool.Exec(ctx, postNested); err != nil {
								return nil, err
							}
							return beside.begin(ctx, d)
						})
				}}
			}
			rates, _, err := contest(ctx, runs, []side{
				drain("own", func(i int) queue.Payload { return singleJob{job(i)} }),
				drain("shared", func(i int) queue.Payload { return sharedJob{job(i)} }),
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, report.Row{
				Name: name, Daybook: rates[1] / rates[0], Unit: "shared / own", Runs: runs,
				Note: fmt.Sprintf("%s jobs/s shared, %s own.", report.Figure(rates[1]), report.Figure(rates[0])),
			})
		}
	}
	return rows, nil
}

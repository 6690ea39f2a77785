package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// Hand-written SQL is the peer that nothing can be faster than by much: no rules, no versions, no
// log, nothing that recovers a lease; a batch is leased, its rows are written and it is completed,
// in one transaction.
const (
	byHandBatch = 500
	byHandConns = 3
)

func migrateByHand(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, createLedger)
	if err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	_, err = conn.Exec(ctx, `
CREATE TABLE job (id bigint PRIMARY KEY, net bigint NOT NULL, tax bigint NOT NULL, state text NOT NULL DEFAULT 'pending');
CREATE INDEX job_pending ON job (id) WHERE state = 'pending';
CREATE FUNCTION post(jobs integer) RETURNS bigint LANGUAGE sql AS $$
    WITH leased AS (
        UPDATE job SET state = 'completed'
         WHERE id = ANY (ARRAY(SELECT id FROM job WHERE state = 'pending' ORDER BY id LIMIT jobs FOR UPDATE SKIP LOCKED))
        RETURNING id, net, tax
    ), posted AS (
        INSERT INTO ledger (job, account, amount, currency)
        SELECT id, account, amount, 'EUR' FROM leased, LATERAL (VALUES ('1200', net + tax), ('4400', -net), ('3800', -tax)) v (account, amount)
    )
    SELECT count(*) FROM leased
$$`)
	return errors.Join(err, conn.Close(ctx))
}

// drainByHand is drainDaybook's counterpart.
func (b *bench) drainByHand(ctx context.Context, n int) (took time.Duration, err error) {
	err = b.withDatabase(ctx, byHandTemplate, func(d *database) error {
		if _, err := d.pool.Exec(ctx,
			`INSERT INTO job (id, net, tax) SELECT i, 1000 + i % 100000, (1000 + i % 100000) * 19 / 100 FROM generate_series(1, $1::bigint) i`, n); err != nil {
			return err
		}
		if err := d.quiesce(ctx); err != nil {
			return err
		}
		began := time.Now()
		group, posting := errgroup.WithContext(ctx)
		for range byHandConns {
			group.Go(func() error {
				for {
					posted, err := one[int](posting, d.pool, `SELECT post($1)`, byHandBatch)
					if err != nil || posted == 0 {
						return err
					}
				}
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		took = time.Since(began)
		right, err := postedOnce(ctx, d.pool)
		if err != nil {
			return err
		}
		if right != n {
			return fmt.Errorf("by hand: of %d jobs %d are posted exactly once", n, right)
		}
		return nil
	})
	return took, err
}

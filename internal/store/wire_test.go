package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// wide is a row of every type of column that a statement's arguments have.
type wide struct {
	N       int64
	Number  *int64
	Text    string
	Bytes   []byte
	Small   int32
	Smaller *int32
	Day     time.Time
}

func wideRows(n int) []wide {
	rows := make([]wide, n)
	for i := range rows {
		rows[i] = wide{
			N: int64(i + 1), Text: strings.Repeat(`é"{},\ `, i%40), Bytes: slices.Repeat([]byte{0, 255}, i%9),
			Small: int32(-i),
			Day:   time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i%400),
		}
		if i%3 == 0 {
			rows[i].Number, rows[i].Smaller = new(int64(i)), new(int32(i))
		}
	}
	return rows
}

// TestLongColumnsArriveAsTheyAre sends columns for which room is made in the connection's buffers,
// and short ones, through each way that pgx has to send a statement: alone and in a batch, twice on
// the same connection, with columns of other types in the same places.
func TestLongColumnsArriveAsTheyAre(t *testing.T) {
	const stmt = `
SELECT n, number, text, bytes, small, smaller, day
  FROM unnest(@ns::bigint[], @numbers::bigint[], @texts::text[], @bytes::bytea[], @smalls::integer[], @smallers::integer[], @days::date[])
       AS t (n, number, text, bytes, small, smaller, day)`
	ctx := context.Background()
	db := pgtest.New(t)
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		for _, n := range []int{0, 1, 30, 3000} {
			t.Run(fmt.Sprintf("%s/%d", mode, n), func(t *testing.T) {
				config := db.Pool.Config().ConnConfig
				config.DefaultQueryExecMode = mode
				conn, err := pgx.ConnectConfig(ctx, config)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, conn.Close(ctx)) })
				rows := wideRows(n)
				ns, numbers, texts, bytes := make([]int64, n), make([]*int64, n), make([]string, n), make([][]byte, n)
				smalls, smallers, days := make([]int32, n), make([]*int32, n), make([]time.Time, n)
				nPointers := make([]*int64, n)
				for i, r := range rows {
					ns[i], numbers[i], texts[i], bytes[i], smalls[i], smallers[i], days[i] = r.N, r.Number, r.Text, r.Bytes,
						r.Small, r.Smaller, r.Day
					nPointers[i] = &ns[i]
				}
				args := store.Args{
					"ns": ns, "numbers": numbers, "texts": texts, "bytes": bytes, "smalls": smalls,
					"smallers": smallers, "days": days,
				}
				others := store.Args{
					"ns": nPointers, "numbers": numbers, "texts": texts, "bytes": bytes, "smalls": smalls,
					"smallers": smallers, "days": days,
				}
				for _, a := range []store.Args{args, others, args} {
					answer, err := conn.Query(ctx, stmt, a)
					require.NoError(t, err)
					got, err := pgx.CollectRows(answer, pgx.RowToStructByPos[wide])
					require.NoError(t, err)
					assert.Equal(t, rows, append([]wide{}, got...))
				}
				batch := &pgx.Batch{}
				for _, a := range []store.Args{args, others} {
					batch.Queue(stmt, a).Query(func(answer pgx.Rows) error {
						got, err := pgx.CollectRows(answer, pgx.RowToStructByPos[wide])
						assert.Equal(t, rows, append([]wide{}, got...))
						return err
					})
				}
				require.NoError(t, conn.SendBatch(ctx, batch).Close())
			})
		}
	}
}

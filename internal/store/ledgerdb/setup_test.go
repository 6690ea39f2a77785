package ledgerdb_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// explaining runs each query as EXPLAIN first, and counts the rows that it reads of tables.
type explaining struct {
	*pgxpool.Pool
	t *testing.T
	// read is how many rows of tables the queries read, those included that a filter left out.
	read float64
	// whole are the tables that were read as a whole.
	whole []string
}

// node is a part of a plan as EXPLAIN (FORMAT JSON) prints it.
type node struct {
	Type    string  `json:"Node Type"`
	Table   string  `json:"Relation Name"`
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Plans   []node  `json:"Plans"`
}

func (e *explaining) Query(ctx context.Context, stmt string, args ...any) (pgx.Rows, error) {
	e.t.Helper()
	var text string
	require.NoError(e.t, e.QueryRow(ctx, `EXPLAIN (ANALYZE, FORMAT JSON) `+stmt, args...).Scan(&text))
	var plans []struct{ Plan node }
	require.NoError(e.t, json.Unmarshal([]byte(text), &plans))
	e.add(plans[0].Plan)
	return e.Pool.Query(ctx, stmt, args...)
}

func (e *explaining) add(n node) {
	if n.Table != "" {
		e.read += (n.Rows + n.Removed) * n.Loops
		if n.Type == "Seq Scan" && n.Rows+n.Removed > 1 {
			e.whole = append(e.whole, n.Table)
		}
	}
	for _, p := range n.Plans {
		e.add(p)
	}
}

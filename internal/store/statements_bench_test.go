package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// BenchmarkArguments compares what it costs to bind the arguments of the statement that completes
// jobs: by Daybook's names, which are read once, and by pgx's, which are read each time.
func BenchmarkArguments(b *testing.B) {
	stmt := store.Jobs.SQL(store.CompleteStmt)
	values := map[string]any{}
	for _, name := range []string{
		"turn", "fence", "worker", "run", "picked", "unlocked", "ids", "outcomes", "codes", "errors", "delays", "versions",
		"results", "unlogged", "attempts", "generations", "started", "old_versions",
	} {
		values[name] = time.Time{}
	}
	for name, rewriter := range map[string]pgx.QueryRewriter{
		"named once":          store.Args(values),
		"pgx.StrictNamedArgs": pgx.StrictNamedArgs(values),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := rewriter.RewriteQuery(b.Context(), nil, stmt, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

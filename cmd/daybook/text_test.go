package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/failure"
)

// TestTextsThatNoRowCanHave: an argument that PostgreSQL cannot hold is refused in words of
// Daybook's.
func TestTextsThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	b := posted(t)
	chart := write(t, t.TempDir()+"/chart.csv", "code,name,type\n1200,Bank\xff,asset\n")
	for _, line := range []string{
		"accounting cancel X d", "accounting elsewhere X d", "accounting enqueue X d --version 1",
		"accounting list --org X", "accounting list --code X", "accounting repost X d",
		"accounting retry X d", "accounting retry --state failed --org X --all", "accounting show de X",
		"accounts import FILE --org de", "accounts list --org X",
		"audit --org X", "entries --org X", "entries --org de --document X", "entries --org de --account X",
		"erase --org X --all", "erase --org de --link user=X", "erasures list --org X",
		"explain de X", "export --format csv --org X",
		"jobs cancel X", "jobs cancel --all --type X", "jobs enqueue t --org X", "jobs enqueue t --org de --key X",
		"jobs list --org X", "jobs list --type X", "jobs list --key X", "jobs list --link user=X", "jobs list --code X",
		"jobs list --queue X", "jobs retry X", "jobs retry --all --org X", "jobs resume X", "jobs show X",
		"jobs stats --org X",
		"organizations cap --org X --none", "organizations rate --org X --none", "organizations hooks --org X --none", "organizations pause --org X",
		"organizations resume --org X", "organizations source X --org de",
		"periods add --org X --year 2026", "periods close --org X --month 2026-01", "periods list --org X",
		"periods policy fail --org X", "queues create X", "queues delete X", "queues pause X",
		"queues create q --owner X",
		"rules activate 1 --org X", "rules list --org X", "rules show --org X", "status --org X --no-temporal",
		"tasks cap --type X --none", "tasks enqueue X", "tasks list --type X", "tasks pause --type X",
		"tokens create --name X --scope read --all-orgs", "tokens create --name n --scope read --org X",
		"tokens create --name n --scope enqueue --all-orgs --types X", "tokens list --org X", "tokens revoke X",
		"trial-balance --org X", "statement balance --org X", "statement income --org de --by X", "statement cash --org X",
		"statement vat --org X", "year-end --org X --year 2026 --undo", "year-end --org de --year 2026 --to X",
	} {
		args := strings.Fields(line)
		for i, a := range args {
			args[i] = strings.Replace(strings.Replace(a, "X", "a\xffb", 1), "FILE", chart, 1)
		}
		r := b.run(args...)
		assert.Equal(t, failure.ExitUsage, r.exit, line)
		assert.NotContains(t, r.err, "SQLSTATE", line)
		assert.NotContains(t, r.err, "is not complete", line)
	}
}

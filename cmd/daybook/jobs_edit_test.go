package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
)

// TestJobsEdit corrects the payload of one dead letter and of many.
func TestJobsEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.background("bill", "--org", "acme", "--payload", `{"currency": "EU", "n": 1}`)
	b.deadLetter(one, "UPSTREAM_5XX")
	file := write(t, t.TempDir()+"/corrected.json", `{"currency": "EUR", "n": 1}`)

	said := b.ok("jobs", "edit", one, "--payload", "@"+file, "--dry-run")
	assert.Contains(t, said, `/currency: "EU" → "EUR"`)
	assert.Contains(t, said, "nothing was changed")
	assert.Empty(t, b.backgroundJob(one).Edits)
	said = b.ok("jobs", "edit", one, "--payload", "@"+file, "--retry", "--generation", "0")
	assert.Contains(t, said, "requeued (job "+one+")")
	d := b.backgroundJob(one)
	assert.Equal(t, "pending", d.State)
	if assert.Len(t, d.Edits, 1) {
		assert.JSONEq(t, `{"currency": "EU", "n": 1}`, string(d.Edits[0].Payload))
	}
	assert.Contains(t, b.ok("jobs", "show", one), "edited")
	assert.Equal(t, failure.ExitConflict, b.run("jobs", "edit", one, "--payload", "{}", "--generation", "0").exit)

	for range 3 {
		b.deadLetter(b.background("mail", "--org", "acme", "--payload", `{"to": "a"}`), "INVALID")
	}
	patch := `[{"op": "replace", "path": "/to", "value": "b"}]`
	assert.Contains(t, b.ok("jobs", "edit", "--all", "--type", "mail", "--patch", patch, "--dry-run"),
		"3 jobs match, 3 would be edited; nothing was changed")
	var op answers.BulkOperation
	b.json(&op, "jobs", "edit", "--all", "--type", "mail", "--patch", patch, "--retry=reset")
	assert.Equal(t, []int{3, 3, 0}, []int{op.Matched, op.Changed, op.Left})
	for _, wrong := range [][]string{
		{one}, {one, "--all"}, {"--all"}, {"--all", "--payload", "{}"}, {one, "--patch", "[]"}, {one, "--payload", "{}", "--retry=soon"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"jobs", "edit"}, wrong...)...).exit, wrong)
	}
}

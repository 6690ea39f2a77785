package main

import (
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// TestDryRunOfAnEdit is refused for what the edit would be refused for.
func TestDryRunOfAnEdit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.background("bill", "--org", "acme", "--payload", `{"currency": "EU"}`)
	r := b.run("jobs", "edit", id, "--payload", `{"currency": "EUR", "iban": "XX00"}`, "--encrypt", "iban", "--dry-run")
	assert.NotZero(t, r.exit, "there are no keys")
	assert.Contains(t, r.err, "there are no keys")
	assert.NotZero(t, b.run("jobs", "edit", id, "--payload", "{}", "--generation", "7", "--dry-run").exit)

	_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.jobs SET payload = payload || '{"$encrypted": {"key": "k"}}' WHERE id = $1`, id)
	require.NoError(t, err)
	r = b.run("jobs", "edit", id, "--payload", `{"currency": "EUR"}`, "--dry-run")
	assert.NotZero(t, r.exit, "the payload is encrypted")
	assert.Contains(t, r.err, "is encrypted, and the new one is not")
	assert.Empty(t, b.backgroundJob(id).Edits)
}

// TestEditOfAnEncryptedJob encrypts it again, and prints nothing of what is encrypted.
//
//nolint:paralleltest // it sets the environment
func TestEditOfAnEncryptedJob(t *testing.T) {
	b := setup(t)
	key, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	t.Setenv("DAYBOOK_ENCRYPTION_KEYS", write(t, t.TempDir()+"/keys.txt", key.String()))
	id := b.background("bill", "--org", "acme", "--payload", `{"currency": "EU", "iban": "XX00"}`, "--encrypt", "iban")
	for _, dry := range []string{"--dry-run", "--retry"} {
		said := b.ok("jobs", "edit", id, "--payload", `{"currency": "EUR", "iban": "XX11"}`, "--encrypt", "iban", dry)
		assert.Contains(t, said, `/currency: "EU" → "EUR"`)
		assert.Contains(t, said, "encrypted anew: iban")
		assert.NotContains(t, said, "XX11")
	}
	d := b.backgroundJob(id)
	assert.Len(t, d.Edits, 1)
	assert.NotContains(t, string(d.Payload), "XX11")
	assert.Contains(t, b.ok("jobs", "decrypt", id), "XX11")
}

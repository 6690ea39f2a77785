//go:build browser

package browser_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestEditAPayload corrects the payload of a dead letter, of which several fields are wrong.
func TestEditAPayload(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	b.jobs()
	b.exec(`UPDATE daybook.jobs SET payload = '{"note": 1, "nott": "x", "password": "hunter2"}' WHERE type = 'mail'`)
	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	b.visit("jobs?state=failed")
	b.click("mail")
	b.click("Edit the payload")
	b.fill("#f-2", "nonsense")
	b.click("Compare")
	b.see("3 fields are wrong.")
	b.see("It is no JSON: a text stands in quotes.")
	b.see("It is number and should be string.")
	b.see("The schema has no such field.")
	for _, scheme := range []string{"light", "dark"} {
		b.as(1280, 900, scheme)
		b.accessible("wrong fields, " + scheme)
	}
	b.as(390, 844, "light")
	b.fits("wrong fields")
	b.accessible("wrong fields, phone")
	b.as(1280, 900, "light")
	b.fill("#f-0", `"hello"`)
	b.fill("#f-1", " ")
	b.fill("#f-2", `"[redacted]"`)
	b.click("Compare")
	b.see("What would change")
	b.click("Save and retry")
	b.see("The payload was changed.")
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload = '{"note": "hello", "password": "hunter2"}'`))
}

// TestEditMany corrects the payloads of many dead letters by a patch, which is tried first.
func TestEditMany(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	fixture.Organization(t, b.Pool, "acme")
	b.jobs()
	b.sample()
	b.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	b.visit("dead-letters")
	b.click("Edit…")
	b.fill("#patch", `[{"op": "replace", "path": "/note", "value": 7}]`)
	b.click("Try")
	b.see("it is number and should be string")
	b.accessible("a patch that is refused")
	b.fill("#patch", `[{"op": "replace", "path": "/note", "value": "hello"}]`)
	b.click("Try")
	b.see("3 dead letters match: 3 would be edited")
	assert.NotContains(t, b.text(), "hunter2")
	for _, scheme := range []string{"dark", "light"} {
		b.as(1280, 900, scheme)
		b.accessible("a patch, " + scheme)
	}
	b.as(390, 844, "light")
	b.fits("a patch")
	b.accessible("a patch, phone")
	assert.Equal(t, 3, b.count("failed"), "a trial changes nothing")
	b.click("Edit and retry")
	b.see("It is finished.")
	b.see("Edited, and pending again")
	b.see("on call")
	assert.Equal(t, 3, b.count("pending"))
}

package tokens_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// TestTextsThatNoRowCanHave: a text that PostgreSQL cannot hold is refused in words of Daybook's.
func TestTextsThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	scopes := []tokens.Scope{tokens.Read}
	for _, wrong := range []string{"a\x00b", "a\xffb"} {
		said := map[string]error{}
		for name, n := range map[string]tokens.New{
			"organization": {OrgID: wrong, Scopes: scopes}, "name": {Name: wrong, Scopes: scopes},
			"scope": {Scopes: []tokens.Scope{tokens.Scope(wrong)}},
			"types": {Scopes: []tokens.Scope{tokens.Enqueue}, Limits: tokens.Limits{Types: []string{wrong}}},
		} {
			_, _, said[name] = tokens.Create(t.Context(), db.Pool, n)
		}
		_, said["List"] = tokens.List(t.Context(), db.Pool, wrong)
		_, _, said["Revoke"] = tokens.Revoke(t.Context(), db.Pool, wrong)
		for what, err := range said {
			if assert.ErrorIs(t, err, tokens.ErrInvalid, what) {
				assert.NotContains(t, err.Error(), "SQLSTATE", what)
			}
		}
	}
}

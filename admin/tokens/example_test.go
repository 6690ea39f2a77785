package tokens_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A customer's program gets a token that may enqueue one type of job for its organization. The
// secret is shown once.
func ExampleCreate() {
	e := pgtest.NewExample()
	defer e.Close()

	t, secret, err := tokens.Create(e.Context(), e.Pool, tokens.New{
		OrgID: "acme", Name: "shop", Scopes: []tokens.Scope{tokens.Enqueue},
		Limits: tokens.Limits{Types: []string{"webhook"}, JobsPerMinute: 120},
	})
	fmt.Println(*t.OrgID, t.Scopes, t.Types, strings.HasPrefix(secret, "dbk_"), err)
	_, _, err = tokens.Create(e.Context(), e.Pool, tokens.New{Name: "nothing"})
	fmt.Println(errors.Is(err, tokens.ErrInvalid))
	// Output:
	// acme [enqueue] [webhook] true <nil>
	// true
}

func ExampleList() {
	e := pgtest.NewExample()
	defer e.Close()
	for _, org := range []string{"acme", "beta"} {
		if _, _, err := tokens.Create(e.Context(), e.Pool,
			tokens.New{OrgID: org, Name: "reports of " + org, Scopes: []tokens.Scope{tokens.Read}}); err != nil {
			panic(err)
		}
	}

	list, err := tokens.List(e.Context(), e.Pool, "beta")
	fmt.Println(len(list), list[0].Name, list[0].LastUsedAt == nil, err)
	// Output: 1 reports of beta true <nil>
}

func ExampleRevoke() {
	e := pgtest.NewExample()
	defer e.Close()
	t, _, err := tokens.Create(e.Context(), e.Pool,
		tokens.New{Name: "ops", Scopes: []tokens.Scope{tokens.Read, tokens.Operate}})
	if err != nil {
		panic(err)
	}

	revoked, changed, err := tokens.Revoke(e.Context(), e.Pool, t.ID)
	fmt.Println(revoked.RevokedAt != nil, changed, err)
	_, changed, err = tokens.Revoke(e.Context(), e.Pool, t.ID)
	fmt.Println(changed, err)
	_, _, err = tokens.Revoke(e.Context(), e.Pool, "unknown")
	fmt.Println(errors.Is(err, tokens.ErrNotFound))
	// Output:
	// true true <nil>
	// false <nil>
	// true
}

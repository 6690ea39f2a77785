package health_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// bundle is a database to look at.
type bundle struct {
	*pgtest.DB
	t *testing.T
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{pgtest.New(t), t}
}

// exec runs statements.
func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
}

// check looks at the database alone.
func (b *bundle) check() health.Report {
	b.t.Helper()
	return clean(b.t, health.Check(b.t.Context(), health.Options{Pool: b.Pool}))
}

// clean requires that every check could be made.
func clean(t *testing.T, r health.Report) health.Report {
	t.Helper()
	for _, c := range r.Checked {
		require.Empty(t, c.Error, c.Name)
	}
	return r
}

// one returns the only finding with a code.
func one(t *testing.T, r health.Report, code health.Code) health.Finding {
	t.Helper()
	all := of(r, code)
	require.Len(t, all, 1, "%s in %+v", code, r.Findings)
	return all[0]
}

// of returns the findings with a code.
func of(r health.Report, code health.Code) (all []health.Finding) {
	for _, f := range r.Findings {
		if f.Code == code {
			all = append(all, f)
		}
	}
	return all
}

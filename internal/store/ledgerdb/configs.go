package ledgerdb

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Config is the configuration by which an organization posts.
type Config struct {
	OrgID string
	// RuleSetVersion is nil when no rule set is active.
	RuleSetVersion *int64
	// RuleSetSHA256 is the hash of the active rule set's source.
	RuleSetSHA256 string
	// ConfigVersion grows with each change of rules, accounts and periods.
	ConfigVersion int64
	// Policy is what a document does whose posting date lies in a closed period.
	Policy models.ClosedPeriodPolicy
	// Elsewhere says that another system has posted documents of it (ReadElsewhere).
	Elsewhere bool
}

// Configs reads the configuration of each organization; one that Daybook does not know is missing
// from the answer.
func Configs(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]Config, error) {
	const stmt = `
SELECT o.id, o.active_rule_set, coalesce(r.sha256, ''), o.config_version, o.closed_period_policy,
       EXISTS (SELECT FROM daybook.posted_elsewhere p WHERE p.org_id = o.id)
  FROM daybook.organizations o
  LEFT JOIN daybook.rule_sets r ON r.org_id = o.id AND r.version = o.active_rule_set
 WHERE o.id = ANY ($1)`
	configs := make(map[string]Config, len(orgs))
	var c Config
	err := store.Each(ctx, tx,
		[]any{&c.OrgID, &c.RuleSetVersion, &c.RuleSetSHA256, &c.ConfigVersion, &c.Policy, &c.Elsewhere}, func() error {
			configs[c.OrgID] = c
			return nil
		}, stmt, orgs)
	return configs, store.Wrap("read organizations", err)
}

// ChartHashes returns a hash of each organization's chart of accounts. Organizations without
// accounts are missing.
func ChartHashes(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]string, error) {
	const stmt = `
SELECT a.org_id, ` + chartHash + ` FROM daybook.accounts a WHERE a.org_id = ANY ($1) GROUP BY a.org_id`
	hashes, err := store.Pairs[string, string](ctx, tx, stmt, orgs)
	return hashes, store.Wrap("read charts", err)
}

// chartHash is the same for charts with the same codes and currencies: a row and an array as text
// quote what they hold.
const chartHash = `encode(sha256(convert_to(array_agg((a.code, a.currencies)::text ORDER BY a.code)::text, 'UTF8')), 'hex')`

// Chart is an organization's chart of accounts: what may be posted to.
type Chart struct {
	OrgID string
	// Hash is that of ChartHashes, and of the accounts here: both are of one moment.
	Hash     string
	Accounts []models.Account
}

// Charts reads the charts of organizations. Those without accounts are missing.
func Charts(ctx context.Context, tx pgx.Tx, orgs []string) ([]Chart, error) {
	const stmt = `
SELECT c.org_id, c.hash, a.code, a.currencies
  FROM (SELECT a.org_id, ` + chartHash +
		` AS hash FROM daybook.accounts a WHERE a.org_id = ANY ($1) GROUP BY a.org_id) c
  JOIN daybook.accounts a ON a.org_id = c.org_id
 ORDER BY c.org_id, a.code`
	var charts []Chart
	var org, hash string
	var a models.Account
	var currencies []string
	err := store.Each(ctx, tx, []any{&org, &hash, &a.Code, &currencies}, func() error {
		a.Currencies = slices.Clone(currencies)
		if n := len(charts); n == 0 || charts[n-1].OrgID != org {
			charts = append(charts, Chart{OrgID: org, Hash: hash})
		}
		c := &charts[len(charts)-1]
		c.Accounts = append(c.Accounts, a)
		return nil
	}, stmt, orgs)
	return charts, store.Wrap("read charts", err)
}

// ClosedSpan is a span of days on which nothing is posted for an organization.
type ClosedSpan struct {
	// StartsOn and EndsOn are the first and the last day.
	StartsOn, EndsOn models.Date
	// InPeriod: it is a closed period. Otherwise it lies in no period, and before one that is closed
	// or before the first open one.
	InPeriod bool
}

// ClosedOn returns the one of the closed spans that a day lies in, or nil.
func ClosedOn(closed []ClosedSpan, day models.Date) *ClosedSpan {
	for i := range closed {
		s := &closed[i]
		if !day.Before(s.StartsOn) && !s.EndsOn.Before(day) {
			return s
		}
	}
	return nil
}

// ClosedSpans reads the closed spans of organizations, each one's oldest first. Those without any
// are missing.
func ClosedSpans(ctx context.Context, tx pgx.Tx, orgs []string) (map[string][]ClosedSpan, error) {
	const stmt = `
SELECT o.id, s.starts_on, s.ends_on, s.in_period
  FROM (SELECT DISTINCT org_id AS id FROM daybook.periods WHERE org_id = ANY ($1) AND state = 'closed') o
 CROSS JOIN LATERAL daybook.closed_spans(o.id) s
 ORDER BY o.id, s.starts_on`
	closed := map[string][]ClosedSpan{}
	var org string
	var span ClosedSpan
	err := store.Each(ctx, tx, []any{&org, &span.StartsOn, &span.EndsOn, &span.InPeriod}, func() error {
		closed[org] = append(closed[org], span)
		return nil
	}, stmt, orgs)
	return closed, store.Wrap("read closed periods", err)
}

// RuleSetSources reads the sources of the active rule sets of configurations, in their order.
func RuleSetSources(ctx context.Context, tx pgx.Tx, configs []Config) ([]string, error) {
	const stmt = `
SELECT r.source
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org_id, version, n)
  JOIN daybook.rule_sets r ON r.org_id = k.org_id AND r.version = k.version
 ORDER BY k.n`
	orgs, versions := make([]string, len(configs)), make([]*int64, len(configs))
	for i, c := range configs {
		orgs[i], versions[i] = c.OrgID, c.RuleSetVersion
	}
	sources, err := store.Collect(ctx, tx, pgx.RowTo[string], stmt, orgs, versions)
	return sources, store.Wrap("read rule sets", err)
}

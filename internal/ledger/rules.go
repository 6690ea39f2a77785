package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// These bounds of the caches are in bytes, roughly. They suffice for 100,000 organizations; for
// 5,000 charts of 100 accounts; and for 2,000 rule sets of 5 kB, which take twelve times their
// source when they are compiled. Organizations with the same chart or rule set share it.
const (
	orgBytes      = 32 << 20
	chartBytes    = 64 << 20
	compiledBytes = 128 << 20
)

// rules keeps compiled rule sets by the hash of their source, charts by the hash of their accounts,
// and what organizations post by for as long as their configuration stays the same.
type rules struct {
	// mu guards all three.
	mu       sync.Mutex
	compiled *lru[string, compiled]
	charts   *lru[string, posting.Accounts]
	orgs     *lru[string, configured]
}

type compiled struct {
	set *posting.RuleSet
	// err says why the source cannot be used.
	err error
}

// configured is what is remembered of an organization under a config version.
type configured struct {
	configVersion int64
	// chartHash is "" for an organization without accounts.
	chartHash string
	closed    []ledgerdb.ClosedSpan
}

// organization is what one organization posts by.
type organization struct {
	ruleSetVersion *int64
	rules          compiled
	chart          posting.Chart
	policy         models.ClosedPeriodPolicy
	// closed holds the days on which nothing is posted, oldest first.
	closed []ledgerdb.ClosedSpan
	// elsewhere says that another system has posted documents of it.
	elsewhere bool
}

func newRules() *rules {
	return &rules{
		compiled: newLRU[string, compiled](compiledBytes), charts: newLRU[string, posting.Accounts](chartBytes),
		orgs: newLRU[string, configured](orgBytes),
	}
}

// load returns what each organization posts by, as the transaction sees it. For any number of
// organizations it makes one query, and a few more if some are not in the cache or have changed.
func (r *rules) load(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]organization, error) {
	configs, err := ledgerdb.Configs(ctx, tx, orgs)
	if err != nil {
		return nil, err
	}
	known, err := r.configurations(ctx, tx, configs)
	if err != nil {
		return nil, err
	}
	charts, err := r.chartsOf(ctx, tx, known)
	if err != nil {
		return nil, err
	}
	sets, err := r.ruleSets(ctx, tx, configs)
	if err != nil {
		return nil, err
	}
	out := make(map[string]organization, len(configs))
	for id, c := range configs {
		out[id] = organization{
			ruleSetVersion: c.RuleSetVersion, rules: sets[c.RuleSetSHA256], chart: charts[id], policy: c.Policy,
			closed: known[id].closed, elsewhere: c.Elsewhere,
		}
	}
	return out, nil
}

// configurations returns the configuration of each organization, from the cache or read from the
// database.
func (r *rules) configurations(ctx context.Context, tx pgx.Tx,
	configs map[string]ledgerdb.Config,
) (map[string]configured, error) {
	known := make(map[string]configured, len(configs))
	var missing []string
	r.mu.Lock()
	for id, c := range configs {
		if o, ok := r.orgs.get(id); ok && o.configVersion == c.ConfigVersion {
			known[id] = o
		} else {
			missing = append(missing, id)
		}
	}
	r.mu.Unlock()
	if len(missing) == 0 {
		return known, nil
	}
	hashes, err := ledgerdb.ChartHashes(ctx, tx, missing)
	if err != nil {
		return nil, err
	}
	closed, err := ledgerdb.ClosedSpans(ctx, tx, missing)
	if err != nil {
		return nil, err
	}
	for _, id := range missing {
		known[id] = configured{configVersion: configs[id].ConfigVersion, chartHash: hashes[id], closed: closed[id]}
	}
	r.remember(known, missing)
	return known, nil
}

func (r *rules) remember(known map[string]configured, orgs []string) {
	const each, period = 300, 100
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range orgs {
		r.orgs.put(id, known[id], each+period*len(known[id].closed))
	}
}

// chartsOf returns the chart of each organization. It reads one of those that have the same, and
// corrects known where a chart has changed since its hash was read.
func (r *rules) chartsOf(ctx context.Context, tx pgx.Tx,
	known map[string]configured,
) (map[string]posting.Chart, error) {
	charts := make(map[string]posting.Chart, len(known))
	for {
		// One organization for each chart that is missing.
		missing := map[string]string{}
		r.mu.Lock()
		for id, o := range known {
			if charts[id] != nil {
				continue
			}
			if o.chartHash == "" {
				charts[id] = posting.Accounts{}
			} else if chart, ok := r.charts.get(o.chartHash); ok {
				charts[id] = chart
			} else {
				missing[o.chartHash] = id
			}
		}
		r.mu.Unlock()
		if len(missing) == 0 {
			return charts, nil
		}
		if err := r.readCharts(ctx, tx, slices.Collect(maps.Values(missing)), known, charts); err != nil {
			return nil, err
		}
	}
}

// readCharts reads the charts of organizations into charts.
func (r *rules) readCharts(ctx context.Context, tx pgx.Tx, orgs []string, known map[string]configured,
	charts map[string]posting.Chart,
) error {
	const each, account = 200, 120
	read, err := ledgerdb.Charts(ctx, tx, orgs)
	if err != nil {
		return err
	}
	for _, id := range orgs {
		o := known[id]
		o.chartHash, charts[id] = "", posting.Accounts{}
		known[id] = o
	}
	for _, c := range read {
		chart := posting.ChartOf(c.Accounts)
		o := known[c.OrgID]
		o.chartHash, charts[c.OrgID] = c.Hash, chart
		known[c.OrgID] = o
		r.mu.Lock()
		r.charts.put(c.Hash, chart, each+account*len(chart))
		r.mu.Unlock()
	}
	r.remember(known, orgs)
	return nil
}

// ruleSets returns the active rule sets by the hash of their source, each compiled once, however
// many organizations share it.
func (r *rules) ruleSets(ctx context.Context, tx pgx.Tx,
	configs map[string]ledgerdb.Config,
) (map[string]compiled, error) {
	const each, sourceByte = 4096, 12
	sets := map[string]compiled{}
	missing := map[string]ledgerdb.Config{}
	r.mu.Lock()
	for _, c := range configs {
		if c.RuleSetVersion == nil {
			continue
		}
		if set, ok := r.compiled.get(c.RuleSetSHA256); ok {
			sets[c.RuleSetSHA256] = set
		} else {
			missing[c.RuleSetSHA256] = c
		}
	}
	r.mu.Unlock()
	if len(missing) == 0 {
		return sets, nil
	}
	read := slices.Collect(maps.Values(missing))
	sources, err := ledgerdb.RuleSetSources(ctx, tx, read)
	if err != nil {
		return nil, err
	}
	if len(sources) != len(read) {
		return nil, fmt.Errorf("%d of %d active rule sets are missing: run `daybook audit`", len(read)-len(sources),
			len(read))
	}
	for i, c := range read {
		var made compiled
		if made.set, err = posting.Compile([]byte(sources[i])); err != nil {
			made.err = fmt.Errorf("rule set version %d cannot be used: %w", *c.RuleSetVersion, err)
		}
		sets[c.RuleSetSHA256] = made
		r.mu.Lock()
		r.compiled.put(c.RuleSetSHA256, made, each+sourceByte*len(sources[i]))
		r.mu.Unlock()
	}
	return sets, nil
}

// evaluate says what a document's impact is.
func (o organization) evaluate(d *models.Document) (*posting.Impact, error) {
	switch {
	case d.Content.Journal != nil:
		return posting.Journal(d, o.chart)
	case o.ruleSetVersion == nil:
		return nil, models.Errorf(models.CodeNoMatchingRule,
			"organization %s has no active rule set: run `daybook rules apply`", d.OrgID)
	case o.rules.err != nil:
		return nil, models.Errorf(models.CodeNoMatchingRule, "%v", o.rules.err)
	}
	return o.rules.set.Evaluate(d, o.chart)
}

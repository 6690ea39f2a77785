package ledger

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// maxCached bounds what is kept in memory: so many organizations, and so many compiled rule sets. Past it the cache
// starts anew.
const maxCached = 10_000

// rules keeps compiled rule sets by the hash of their source, and charts by organization, for as long as the
// organization's configuration stays the same.
type rules struct {
	mu       sync.Mutex
	compiled map[string]compiled
	orgs     map[string]organization
}

type compiled struct {
	set *posting.RuleSet
	err error
}

// organization is what one organization posts by.
type organization struct {
	configVersion  int64
	ruleSetVersion *int64
	rules          compiled
	chart          posting.Chart
	policy         models.ClosedPeriodPolicy
	// closed holds the closed periods, oldest first.
	closed []models.Period
}

func newRules() *rules {
	return &rules{compiled: map[string]compiled{}, orgs: map[string]organization{}}
}

// load returns what each organization posts by, as it is in the transaction.
func (r *rules) load(ctx context.Context, tx pgx.Tx, orgs []string) (map[string]organization, error) {
	configs, err := store.Configs(ctx, tx, orgs)
	if err != nil {
		return nil, err
	}
	out := make(map[string]organization, len(configs))
	for id, c := range configs {
		r.mu.Lock()
		o, ok := r.orgs[id]
		r.mu.Unlock()
		if !ok || o.configVersion != c.ConfigVersion {
			if o, err = r.read(ctx, tx, c); err != nil {
				return nil, err
			}
		}
		out[id] = o
	}
	return out, nil
}

func (r *rules) read(ctx context.Context, tx pgx.Tx, c store.Config) (organization, error) {
	o := organization{configVersion: c.ConfigVersion, ruleSetVersion: c.RuleSetVersion, policy: c.Policy}
	accounts, err := store.Accounts(ctx, tx, c.OrgID)
	if err != nil {
		return o, err
	}
	o.chart = posting.ChartOf(accounts)
	if o.closed, err = store.ClosedSpans(ctx, tx, c.OrgID); err != nil {
		return o, err
	}
	if c.RuleSetVersion != nil {
		if o.rules, err = r.compile(ctx, tx, c); err != nil {
			return o, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.orgs) >= maxCached {
		clear(r.orgs)
	}
	r.orgs[c.OrgID] = o
	return o, nil
}

// compile compiles a rule set once, however many organizations share its source.
func (r *rules) compile(ctx context.Context, tx pgx.Tx, c store.Config) (compiled, error) {
	r.mu.Lock()
	have, ok := r.compiled[c.RuleSetSHA256]
	r.mu.Unlock()
	if ok {
		return have, nil
	}
	source, err := store.RuleSetSource(ctx, tx, c.OrgID, *c.RuleSetVersion)
	if err != nil {
		return compiled{}, err
	}
	var made compiled
	if made.set, err = posting.Compile([]byte(source)); err != nil {
		made.err = fmt.Errorf("rule set version %d cannot be used: %w", *c.RuleSetVersion, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.compiled) >= maxCached {
		clear(r.compiled)
	}
	r.compiled[c.RuleSetSHA256] = made
	return made, nil
}

// evaluate says what a document's impact is.
func (o organization) evaluate(d *models.Document) (*posting.Impact, error) {
	switch {
	case o.ruleSetVersion == nil:
		return nil, models.Errorf(models.CodeNoMatchingRule, "organization %s has no active rule set: run `daybook rules apply`", d.OrgID)
	case o.rules.err != nil:
		return nil, models.Errorf(models.CodeNoMatchingRule, "%v", o.rules.err)
	}
	return o.rules.set.Evaluate(d, o.chart)
}

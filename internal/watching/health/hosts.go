package health

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// askHosts asks the servers of a pool's address what they are, where it names several.
func askHosts(ctx context.Context, pool *pgxpool.Pool) []hosts.Host {
	if pool == nil {
		return nil
	}
	config := pool.Config()
	if !hosts.Several(config.ConnConfig) {
		return nil
	}
	return hosts.Ask(ctx, config)
}

// servers looks whether the servers of the address agree on one primary.
func (p *probe) servers(all []hosts.Host) {
	if all == nil {
		return
	}
	p.check(checkHosts, func() ([]Finding, error) {
		var silent []string
		for _, h := range all {
			if h.Err != nil {
				silent = append(silent, h.Name+" does not answer: "+sentence(h.Err))
			}
		}
		p.note = strings.Join(silent, "; ")
		split := hosts.Split(all)
		if split == "" {
			return nil, nil
		}
		return []Finding{{
			Code: SplitBrain, Severity: Critical, stalled: true,
			Says: "The servers of the address do not agree on one primary: " + split + ". Workers begin nothing meanwhile.",
			Todo: store.SplitAdvice,
		}}, nil
	})
}

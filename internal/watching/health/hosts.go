package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/internal/text/phrase"
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
				silent = append(silent, h.Name+" does not answer: "+clip(h.Why(), 300))
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

// failover looks whether the primary has another timeline than in the last sample, or had when that
// was made.
func (p *probe) failover(ctx context.Context) error {
	err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		p.timeline, err = diagnosis.Timeline(ctx, tx)
		return err
	})
	if err != nil || p.timeline == 0 {
		return err
	}
	return p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		g, err := figures.ReadGauges(ctx, tx)
		p.promoted = g.Database.PromotedAt
		if sampled := g.Database.Timeline; err == nil && sampled != 0 && sampled != p.timeline {
			p.promoted = &p.at
		}
		return err
	})
}

// failedOver says that a failover was lately; empty: none is known.
func (p *probe) failedOver() string {
	const lately = 10 * time.Minute
	if p.promoted == nil || p.clock().Sub(*p.promoted) > lately {
		return ""
	}
	return fmt.Sprintf("After a failover %s ago (timeline %d)", phrase.Age(p.clock().Sub(*p.promoted)), p.timeline)
}

package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

const (
	// backlogSpan is over what time a queue has to grow, and backlogLeast from how many due jobs on
	// it counts.
	backlogSpan  = 10 * time.Minute
	backlogLeast = 100
)

// growth looks at the backlog, unless the report is about one organization: the sampler counts all
// together.
func (p *probe) growth(ctx context.Context) {
	if p.OrgID != "" {
		p.skip(checkBacklog)
		return
	}
	p.once(ctx, checkBacklog, p.backlog)
}

// backlog looks whether more became due during the last minutes than was worked, by the depths that
// the sampler has noted: of all organizations. Without a sampler nothing is known, and nothing found.
func (p *probe) backlog(ctx context.Context, tx pgx.Tx) (found []Finding, err error) {
	depths, err := figures.Depths(ctx, tx, figures.Filter{Since: p.clock().Add(-backlogSpan), Step: time.Minute})
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds() {
		own := slices.DeleteFunc(slices.Clone(depths), func(d figures.Depth) bool { return d.Kind != kind })
		if f, grows := p.grows(kind, own); grows {
			found = append(found, f)
		}
	}
	return found, nil
}

// grows compares the first third of the depths with the middle and the last: a queue that grows
// does so in both steps, by a tenth at least.
func (p *probe) grows(kind string, depths []figures.Depth) (f Finding, grows bool) {
	third := len(depths) / 3
	if third == 0 {
		return f, false
	}
	least := func(part []figures.Depth) int64 {
		return slices.MinFunc(part, func(a, b figures.Depth) int { return int(a.Due - b.Due) }).Due
	}
	first, middle, last := least(depths[:third]), least(depths[third:len(depths)-third]),
		least(depths[len(depths)-third:])
	more := func(a, b int64) bool { return b-a > max(a/10, backlogLeast/2) }
	if last < backlogLeast || !more(first, middle) || !more(middle, last) {
		return f, false
	}
	span := depths[len(depths)-1].At.Sub(depths[0].At)
	f = Finding{Code: BacklogGrows, Severity: Warning, Kind: kind, Count: last, Since: store.TimeOrNil(depths[0].At)}
	f.Says = fmt.Sprintf("More %s become due than are worked: %s were due %s ago, %s are now.", jobWords(f)[1],
		phrase.Count(first), phrase.Age(span), phrase.Count(last))
	f.Todo = "See to the other findings first. Without any: add workers, or lanes: `daybook workflow configure " + kind +
		" --concurrency " + lanes(kind) + "`; or look at what became slow."
	f.follows = true
	return f, true
}

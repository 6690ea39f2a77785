package ledger

import (
	"bytes"
	"context"
	"math/big"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// readElsewhere reads what other systems have posted of the chunk's documents. Organizations
// without any such document cost nothing here.
func (c *chunk) readElsewhere(ctx context.Context) error {
	var keys []Key
	var places []int
	for i, key := range c.keys {
		if c.orgs[key.OrgID].elsewhere {
			keys, places = append(keys, key), append(places, i)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	found, err := ledgerdb.ReadElsewhere(ctx, c.tx, keys)
	if err != nil {
		return err
	}
	c.elsewhere = make([]*ledgerdb.Elsewhere, len(c.keys))
	for i, place := range places {
		c.elsewhere[place] = found[i]
	}
	return nil
}

// postedElsewhere is what another system has posted of job i's document; nil: nothing, or it has
// taken its posting back.
func (c *chunk) postedElsewhere(i int) *ledgerdb.Elsewhere {
	if c.elsewhere == nil || c.elsewhere[i] == nil || c.elsewhere[i].Next == models.NextFull {
		return nil
	}
	return c.elsewhere[i]
}

// left reports whether the version that job i asks for is left to the other system: it is the one
// that is posted there, or a person decided so. ready is false for a document that is to be taken
// back.
func (c *chunk) left(i int, e *ledgerdb.Elsewhere, ready bool) bool {
	job := c.jobs[i]
	if c.last[i] != nil {
		return false
	}
	if e.Left != nil && job.Version <= *e.Left {
		return true
	}
	return ready && job.Version <= e.Version && job.Epoch == 0
}

// waits is why job i waits for a person; nil: it does not.
func (c *chunk) waits(i int, e *ledgerdb.Elsewhere) error {
	if e.Next != models.NextWait {
		return nil
	}
	job := c.jobs[i]
	return models.Errorf(models.CodePostedElsewhere,
		"%s has posted the document in version %d, and the job asks for version %d: decide by `daybook accounting "+
			"elsewhere %s %s --post difference|full|nothing`",
		e.System, e.Version, job.Version, job.OrgID, job.DocumentID)
}

// mirror are the entries that cancel what is posted elsewhere, or why the chart refuses them.
func (o organization) mirror(e *ledgerdb.Elsewhere) ([]posting.Entry, error) {
	entries := make([]posting.Entry, 0, len(e.Entries))
	for _, one := range e.Entries {
		switch {
		case one.Amount == 0:
			continue
		case !o.chart.HasAccount(one.Account):
			return nil, models.Errorf(models.CodeUnknownAccount,
				"%s has posted to account %s, which the chart does not have: add it, so that the posting can be mirrored",
				e.System, one.Account)
		case !o.chart.Allows(one.Account, one.Currency):
			return nil, models.Errorf(models.CodeUnknownAccount, "%s has posted %s to account %s, which does not take it: "+
				"add the currency, so that the posting can be mirrored", e.System, one.Currency, one.Account)
		}
		entries = append(entries,
			posting.Entry{
				Account: one.Account, Side: one.Side.Opposite(), Amount: one.Amount, Currency: one.Currency,
				RuleLineID: posting.ElsewhereLineID,
			})
	}
	return entries, nil
}

// difference makes of a document's impact what is missing to it elsewhere: its entries and the
// mirror of those elsewhere, or no entries where both come to the same.
func (o organization) difference(impact *posting.Impact, e *ledgerdb.Elsewhere) (*posting.Impact, error) {
	mirror, err := o.mirror(e)
	if err != nil {
		return nil, err
	}
	all := *impact
	all.Entries, all.NoEntries = append(append([]posting.Entry{}, impact.Entries...), mirror...), ""
	nets := map[[2]string]*big.Int{}
	for _, entry := range all.Entries {
		key := [2]string{entry.Account, entry.Currency}
		if nets[key] == nil {
			nets[key] = new(big.Int)
		}
		amount := big.NewInt(entry.Amount)
		if entry.Side == models.Credit {
			amount.Neg(amount)
		}
		nets[key].Add(nets[key], amount)
	}
	for _, net := range nets {
		if net.Sign() != 0 {
			return &all, nil
		}
	}
	all.Entries, all.NoEntries = nil, models.NoEntriesElsewhere
	return &all, nil
}

// retractElsewhere takes back what another system has posted of job i's document: the mirror of it
// is posted in place of what Daybook has posted. It is an impact of no rule set, which stays until
// the document is ready again.
func (c *chunk) retractElsewhere(i int, e *ledgerdb.Elsewhere) {
	org, last := c.orgs[c.jobs[i].OrgID], c.last[i]
	if c.left(i, e, false) {
		return
	}
	if err := c.waits(i, e); err != nil {
		c.errs[i] = err
		return
	}
	mirror, err := org.mirror(e)
	if err != nil {
		c.errs[i] = err
		return
	}
	p := plan{index: i, next: 1, retracts: true}
	if last.Live() {
		p.reverse = last
	}
	if last != nil {
		p.next = last.Seq + 1
	}
	if len(mirror) > 0 {
		postedOn := e.PostedOn.Nearest() // the other system may have had any date
		p.post = &posting.Impact{DocumentDate: postedOn, PostingDate: postedOn, Entries: mirror}
		p.hash, p.epoch = contentHash(p.post), c.jobs[i].Epoch
		if p.postingDate, err = org.firstOpenDay(postedOn); err != nil {
			c.errs[i] = err
			return
		}
		if last.Live() && last.RuleSetVersion == nil && bytes.Equal(last.ContentHash, p.hash) {
			return
		}
	}
	if p.links() > 0 {
		c.plan(p)
	}
}

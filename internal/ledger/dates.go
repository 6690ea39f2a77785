package ledger

import (
	"time"

	"github.com/daybook-dev/daybook/models"
)

// closedOn returns the closed period that a day lies in, or nil.
func (o organization) closedOn(day models.Date) *models.Period {
	for i := range o.closed {
		p := &o.closed[i]
		if !day.Time().Before(p.StartsOn.Time()) && !day.Time().After(p.EndsOn.Time()) {
			return p
		}
	}
	return nil
}

// firstOpenDay returns the first day from the given one on that lies in no closed period.
func (o organization) firstOpenDay(day models.Date) models.Date {
	for p := o.closedOn(day); p != nil; p = o.closedOn(day) {
		next := p.EndsOn.Time().Add(24 * time.Hour)
		day = models.NewDate(next.Year(), next.Month(), next.Day())
	}
	return day
}

// postingDate is the day on which a document of the given date is posted, by the organization's policy.
func (o organization) postingDate(day models.Date) (models.Date, error) {
	p := o.closedOn(day)
	if p == nil || o.policy == models.PolicyFirstOpenDay {
		return o.firstOpenDay(day), nil
	}
	return day, models.Errorf(models.CodePeriodClosed,
		"the posting date %s lies in the closed period from %s to %s: open it (`daybook periods open`), or set the policy first_open_day", day, p.StartsOn, p.EndsOn)
}

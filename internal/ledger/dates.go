package ledger

import (
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// closedOn returns the closed span that a day lies in, or nil.
func (o organization) closedOn(day models.Date) *ledgerdb.ClosedSpan {
	return ledgerdb.ClosedOn(o.closed, day)
}

// firstOpenDay returns the first day from the given one on that is open. There is none where
// everything is closed up to the last day that can be posted on.
func (o organization) firstOpenDay(day models.Date) (models.Date, error) {
	first := day.Nearest()
	for s := o.closedOn(first); s != nil; s = o.closedOn(first) {
		first = s.EndsOn.AddDays(1)
	}
	if first.Check() != nil {
		return first, models.Errorf(models.CodePeriodClosed,
			"no day from %s on is open: open a period (`daybook periods open`)", day)
	}
	return first, nil
}

// checkYearEnd refuses a document that is a year-end close of a day that is closed. It stands on the
// year's last day or nowhere: on a later one it would move what the next year has earned and spent.
func (o organization) checkYearEnd(d *models.Document, day models.Date) error {
	if d == nil || d.Content.Journal == nil || !d.Content.Journal.YearEnd || o.closedOn(day) == nil {
		return nil
	}
	return models.Errorf(models.CodePeriodClosed,
		"a year-end close stands on the year's last day, and the %s is closed: open its period (`daybook periods open`)", day)
}

// dayOf is the day on which a document is posted whose impact has a posting date.
func (o organization) dayOf(d *models.Document, day models.Date) (models.Date, error) {
	if err := o.checkYearEnd(d, day); err != nil {
		return day, err
	}
	return o.postingDate(day)
}

// reversalDay is the day on which is reversed what is posted of a document on a day; nil: the
// document is not known any more.
func (o organization) reversalDay(d *models.Document, day models.Date) (models.Date, error) {
	if err := o.checkYearEnd(d, day); err != nil {
		return day, err
	}
	return o.firstOpenDay(day)
}

// postingDate is the day on which a document of the given date is posted, by the organization's
// policy.
func (o organization) postingDate(day models.Date) (models.Date, error) {
	s := o.closedOn(day)
	switch {
	case s == nil:
		return day, nil
	case o.policy == models.PolicyFirstOpenDay:
		return o.firstOpenDay(day)
	case s.InPeriod:
		return day, models.Errorf(models.CodePeriodClosed,
			"the posting date %s lies in the closed period from %s to %s: "+
				"open it (`daybook periods open`), or set the policy first_open_day", day, s.StartsOn, s.EndsOn)
	}
	return day, models.Errorf(models.CodePeriodClosed,
		"the posting date %s lies in no period, and before one that is closed or before the first open one: "+
			"add a period for it (`daybook periods add`), or set the policy first_open_day", day)
}

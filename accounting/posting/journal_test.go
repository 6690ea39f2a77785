package posting_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

func TestJournalPostsWhatItSays(t *testing.T) {
	t.Parallel()
	day, value := models.NewDate(2026, time.January, 1), models.NewDate(2026, time.January, 3)
	document := func(change func(*models.Document)) *models.Document {
		d := &models.Document{
			OrgID: "acme", ID: "j", Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: "EUR",
			IssueDate: day, ValueDate: &value,
			Content: models.Content{Journal: &models.Journal{Reason: "opening", By: "clerk", Entries: []models.JournalEntry{
				{Account: "1200", Amount: 500},
				{Account: "9000", Amount: -500},
				{Account: "1200", Amount: -7, Currency: "USD"},
				{Account: "9000", Amount: 7, Currency: "USD"},
			}}},
		}
		if change != nil {
			change(d)
		}
		return d
	}
	chart := posting.Accounts{"1200": nil, "9000": nil, "1210": {"USD"}}
	impact, err := posting.Journal(document(nil), chart)
	require.NoError(t, err)
	assert.Equal(t, &posting.Impact{
		RuleID: posting.JournalRuleID, DocumentDate: day, PostingDate: value, Entries: []posting.Entry{
			{Account: "1200", Side: models.Debit, Amount: 500, Currency: "EUR", RuleLineID: "journal", DocumentLine: 1},
			{Account: "9000", Side: models.Credit, Amount: 500, Currency: "EUR", RuleLineID: "journal", DocumentLine: 2},
			{Account: "1200", Side: models.Credit, Amount: 7, Currency: "USD", RuleLineID: "journal", DocumentLine: 3},
			{Account: "9000", Side: models.Debit, Amount: 7, Currency: "USD", RuleLineID: "journal", DocumentLine: 4},
		},
	}, impact)

	rules := compile(t, sales)
	asked, err := rules.Evaluate(document(nil), chart)
	require.NoError(t, err)
	assert.Equal(t, impact, asked, "no rule is asked")
	_, computed := rules.ComputedDate(document(nil))
	assert.False(t, computed)

	for name, c := range map[string]struct {
		change func(*models.Document)
		code   models.ErrorCode
		says   string
	}{
		"unbalanced": {
			func(d *models.Document) { d.Content.Journal.Entries[3].Amount = 6 }, models.CodeUnbalanced,
			"credits are 0.01 USD more than debits",
		},
		"not in the chart": {
			func(d *models.Document) { d.Content.Journal.Entries[0].Account = "1" }, models.CodeUnknownAccount, `account "1"`,
		},
		"another currency": {
			func(d *models.Document) { d.Content.Journal.Entries[0].Account = "1210" }, models.CodeUnknownAccount,
			"does not take EUR",
		},
		"zero":         {func(d *models.Document) { d.Content.Journal.Entries[0].Amount = 0 }, models.CodeDocumentInvalid, "entry 1: the amount is 0"},
		"out of range": {func(d *models.Document) { d.Content.Journal.Entries[0].Amount = math.MinInt64 }, models.CodeDocumentInvalid, "entry 1"},
		"sum out of range": {
			func(d *models.Document) {
				d.Content.Journal.Entries[0].Amount = math.MaxInt64
				d.Content.Journal.Entries[1].Amount = math.MaxInt64
			}, models.CodeDocumentInvalid, "entry 2: the sum is out of range",
		},
		"no currency": {func(d *models.Document) { d.Content.Journal.Entries[0].Currency = "eur" }, models.CodeDocumentInvalid, "ISO 4217"},
		"no entries":  {func(d *models.Document) { d.Content.Journal.Entries = nil }, models.CodeDocumentInvalid, "no entries"},
		"no reason":   {func(d *models.Document) { d.Content.Journal.Reason = " \t" }, models.CodeDocumentInvalid, "why"},
		"no writer":   {func(d *models.Document) { d.Content.Journal.By = "\u00a0" }, models.CodeDocumentInvalid, "who"},
		"no date":     {func(d *models.Document) { d.IssueDate = models.Date{} }, models.CodeDocumentInvalid, "date"},
		"two of it":   {func(d *models.Document) { d.Content.Total = 500 }, models.CodeDocumentInvalid, "states content.total as well"},
	} {
		_, err := posting.Journal(document(c.change), chart)
		failed, ok := errors.AsType[*posting.Error](err)
		require.True(t, ok, name)
		assert.Equal(t, c.code, failed.Code, name)
		assert.Contains(t, failed.Error(), c.says, name)
		if c.code != models.CodeUnknownAccount {
			require.Error(t, posting.Check(document(c.change), nil), name)
		}
	}
}

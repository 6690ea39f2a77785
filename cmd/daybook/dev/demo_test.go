package dev

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// The demonstration must notice each way in which its result can be wrong.
func TestDemoVerdict(t *testing.T) {
	t.Parallel()
	documents := func() *demoDocuments {
		d := &demoDocuments{mustFail: map[string]models.ErrorCode{"bad": models.CodeUnbalanced}}
		for _, id := range []string{"good", "bad"} {
			d.items = append(d.items, books.ImportItem{Source: id, Document: models.Document{OrgID: "o", ID: id}})
		}
		return d
	}
	jobs := func() []models.AccountingJob {
		code, message := models.CodeUnbalanced, "off by 10"
		return []models.AccountingJob{
			{OrgID: "o", DocumentID: "good", State: models.JobCompleted},
			{OrgID: "o", DocumentID: "bad", State: models.JobFailed, LastErrorCode: &code, LastError: &message},
		}
	}
	line := func(debit, credit int64) []ledgerdb.SpanBalance {
		return []ledgerdb.SpanBalance{{
			Account: "1", Currency: "EUR", Opening: new(big.Int), Debit: big.NewInt(debit), Credit: big.NewInt(credit),
			Closing: big.NewInt(debit - credit),
		}}
	}
	for name, test := range map[string]struct {
		jobs   func([]models.AccountingJob) []models.AccountingJob
		posted int64
		lines  []ledgerdb.SpanBalance
		wrong  string
	}{
		"all is well":    {nil, 1, line(5, 5), ""},
		"out of balance": {nil, 1, line(5, 4), "debits and credits differ"},
		"not posted":     {nil, 0, line(5, 5), "1 completed jobs and 0 posted documents"},
		"a job is missing": {
			func(j []models.AccountingJob) []models.AccountingJob { return j[:1] }, 1, line(5, 5),
			"bad has no job",
		},
		"one is pending":    {func(j []models.AccountingJob) []models.AccountingJob { j[0].State = models.JobPending; return j }, 0, line(5, 5), "good is pending and must be posted"},
		"the bad is posted": {func(j []models.AccountingJob) []models.AccountingJob { j[1].State = models.JobCompleted; return j }, 2, line(5, 5), "must fail with UNBALANCED"},
		"another error": {func(j []models.AccountingJob) []models.AccountingJob {
			code := models.CodeTimeout
			j[1].LastErrorCode = &code
			return j
		}, 1, line(5, 5), "bad is failed TIMEOUT and must fail with UNBALANCED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := jobs()
			if test.jobs != nil {
				list = test.jobs(list)
			}
			trial := ledgerdb.AddUp(test.lines)
			r := &demoResult{TrialBalance: answers.TrialBalanceOf(&ledgerdb.BalanceFilter{}, &trial)}
			r.compare(documents(), list)
			r.count(list, map[string]int64{"o": test.posted})
			if test.wrong == "" {
				assert.NoError(t, r.verdict())
				return
			}
			assert.ErrorContains(t, r.verdict(), test.wrong)
		})
	}
}

func TestEmbeddedDocuments(t *testing.T) {
	t.Parallel()
	docs, err := embeddedDocuments()
	require.NoError(t, err)
	assert.Equal(t, []string{"de", "es", "jp"}, docs.organizations())
	assert.Equal(t, map[string]models.ErrorCode{"invoice-2": models.CodeUnbalanced}, docs.mustFail)
}

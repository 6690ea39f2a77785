package handlers

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// reportsWith registers the type report with a bucket in memory and a configuration.
func (b *bundle) reportsWith(c ReportConfig) *blob.Bucket {
	b.t.Helper()
	h, err := newReport(b.Pool, c)
	require.NoError(b.t, err)
	h.bucket = memblob.OpenBucket(nil)
	b.t.Cleanup(func() { assert.NoError(b.t, h.Close()) })
	jobs.Register(b.registry, ReportPolicy(), h.Handle)
	return h.bucket
}

// content reads what a report says it wrote.
func content(t *testing.T, bucket *blob.Bucket, r ReportResult) string {
	t.Helper()
	whole, err := bucket.ReadAll(t.Context(), r.Key)
	require.NoError(t, err)
	sum := sha256.Sum256(whole)
	assert.Equal(t, hex.EncodeToString(sum[:]), r.SHA256)
	return string(whole)
}

func TestReportsInHTML(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	bucket := b.reportsWith(ReportConfig{})
	for kind, want := range map[ReportKind][]string{
		ReportTrialBalance:  {"<h1>Trial balance</h1>", `<td class="number">60.00</td>`, `<tr class="total">`},
		ReportAccountLedger: {"<h1>Account ledger</h1>", "inv_c", "Opening balance", `<td class="number">30.00</td>`},
		ReportJournal:       {"<h1>Journal</h1>", "2026-03-30", "4400", "inv_a"},
	} {
		account := ""
		if kind == ReportAccountLedger {
			account = "1200"
		}
		r := result[ReportResult](t, b.run(Report{Kind: kind, Account: account, Format: ReportHTML}))
		page := content(t, bucket, r)
		assert.True(t, strings.HasSuffix(r.Key, ".html"))
		for _, w := range want {
			assert.Contains(t, page, w, kind)
		}
	}
}

func TestReportsInPDF(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	b.exec(`UPDATE daybook.organizations SET name = 'Żółw 漢'`)
	bucket := b.reportsWith(ReportConfig{MaxPDFRows: 5})
	r := result[ReportResult](t, b.run(Report{Kind: ReportTrialBalance, Format: ReportPDF}))
	assert.True(t, strings.HasPrefix(content(t, bucket, r), "%PDF-"))
	assert.True(t, strings.HasSuffix(r.Key, ".pdf"))
	assert.Equal(t, int64(2), r.Rows)
	assert.Positive(t, r.Missing, "a character that the font does not have is counted")
	facts, err := bucket.Attributes(t.Context(), r.Key)
	require.NoError(t, err)
	assert.Equal(t, "application/pdf", facts.ContentType)
	// A journal has six rows: too many.
	failed := b.run(Report{Kind: ReportJournal, Format: ReportPDF})
	assert.Equal(t, models.CodePayloadInvalid, failed.Code)
	assert.Contains(t, failed.Error, "more than 5 rows")
	refused := b.run(Report{Kind: ReportJournal, Format: "docx"})
	assert.Equal(t, models.CodePayloadInvalid, refused.Code)
}

// TestPrintingWritesNoFile: a container's file system may be read-only, without a /tmp.
func TestPrintingWritesNoFile(t *testing.T) {
	b := setup(t)
	b.books()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.html"), bytes.Repeat([]byte("<p>"), maxPrintedHTML/3+1), 0o600))
	bucket := b.reportsWith(ReportConfig{Templates: dir})
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	r := result[ReportResult](t, b.run(Report{Kind: ReportTrialBalance, Format: ReportPDF}))
	assert.True(t, strings.HasPrefix(content(t, bucket, r), "%PDF-"))
	failed := b.run(Report{Kind: ReportJournal, Format: ReportPDF})
	assert.Equal(t, models.CodePayloadInvalid, failed.Code)
	assert.Contains(t, failed.Error, "more than 24 MiB of HTML")
}

// A template that fails on a report is the operator's to correct: no attempt is spent on it again.
func TestOwnReportTemplates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.html"), []byte(`<h1>{{.Nothing}}</h1>`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.html"), []byte(`<h1>Ours: {{.Title}}</h1>`), 0o600))
	bucket := b.reportsWith(ReportConfig{Templates: dir})
	r := result[ReportResult](t, b.run(Report{Kind: ReportTrialBalance, Format: ReportHTML}))
	assert.Equal(t, "<h1>Ours: Trial balance</h1>", content(t, bucket, r))
	failed := b.run(Report{Kind: ReportJournal, Format: ReportPDF})
	assert.Equal(t, models.JobFailed, failed.State)
	assert.Contains(t, failed.Error, "DAYBOOK_REPORTS_TEMPLATES")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.html"), []byte(`{{`), 0o600))
	_, err := newReport(b.Pool, ReportConfig{Templates: dir})
	require.ErrorContains(t, err, "REPORTS_TEMPLATES")
	_, err = newReport(b.Pool, ReportConfig{Font: filepath.Join(dir, "journal.html")})
	require.ErrorContains(t, err, "REPORTS_FONT")
}

// attached reads the attachment of a message with one.
func attached(t *testing.T, data string) (name, body string) {
	t.Helper()
	m, err := netmail.ReadMessage(strings.NewReader(data))
	require.NoError(t, err)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := parts.NextPart()
		require.NoError(t, err, "the message has an attachment")
		if part.FileName() == "" {
			continue
		}
		var all strings.Builder
		_, err = io.Copy(&all, part)
		require.NoError(t, err)
		raw, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\r", "", "\n", "").Replace(all.String()))
		require.NoError(t, err)
		return part.FileName(), string(raw)
	}
}

// A report is mailed by a job that the report's completion makes: once, with the file that was
// written.
func TestReportsAreMailed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.books()
	bucket := b.reportsWith(ReportConfig{MailTo: []string{"@example.com"}})
	server := serveMail(t, EmailPlain)
	b.mails(server, func(c *EmailConfig) { c.Reports, c.ReportsTo = bucket, []string{"@example.com"} })
	mailed := b.run(Report{
		Kind: ReportTrialBalance, Format: ReportPDF,
		Mail: &ReportMail{To: []string{"Ada <ada@example.com>"}, Subject: "March"},
	})
	r := result[ReportResult](t, mailed)
	b.work()
	messages := server.messages()
	require.Len(t, messages, 1)
	name, body := attached(t, messages[0].data)
	assert.Equal(t, "trial-balance.pdf", name)
	assert.Equal(t, content(t, bucket, r), body)
	b.work()
	assert.Len(t, server.messages(), 1)

	// Another recipient: nothing is written or sent.
	refused := b.run(Report{
		Kind: ReportTrialBalance,
		Mail: &ReportMail{To: []string{"eve@example.org"}, Subject: "March"},
	})
	assert.Equal(t, models.CodeAuthenticationFailed, refused.Code)
	assert.Contains(t, refused.Error, "DAYBOOK_REPORTS_MAIL_TO")
	invalid := b.run(Report{
		Kind: ReportTrialBalance,
		Mail: &ReportMail{To: []string{"ada@example.com"}, Subject: "a\nb"},
	})
	assert.Equal(t, models.CodePayloadInvalid, invalid.Code)
}

// What a message may have as an attachment: files of its organization, as they were meant, up to a
// size, for recipients that are allowed.
func TestAttachmentsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { assert.NoError(t, bucket.Close()) })
	for key, text := range map[string]string{
		orgPrefix(org) + "a.csv": "mine", orgPrefix("other") + "a.csv": "theirs",
		orgPrefix(org) + "big": strings.Repeat("x", 200),
	} {
		require.NoError(t, bucket.WriteAll(t.Context(), key, []byte(text), nil))
	}
	server := serveMail(t, EmailPlain)
	h := b.mails(server, func(c *EmailConfig) {
		c.Reports, c.ReportsTo, c.MaxAttached = bucket,
			[]string{"ada@example.com"}, 100
	})
	file := EmailAttachment{File: orgPrefix(org) + "a.csv"}
	for name, c := range map[string]struct {
		file EmailAttachment
		to   string
		code models.ErrorCode
	}{
		"another organization's": {
			EmailAttachment{File: orgPrefix("other") + "a.csv"},
			"ada@example.com",
			models.CodeAuthenticationFailed,
		},
		"a way out": {
			EmailAttachment{File: orgPrefix(org) + "../other/a.csv"},
			"ada@example.com",
			models.CodePayloadInvalid,
		},
		"gone":  {EmailAttachment{File: orgPrefix(org) + "b.csv"}, "ada@example.com", models.CodeNotFound},
		"large": {EmailAttachment{File: orgPrefix(org) + "big"}, "ada@example.com", models.CodePayloadInvalid},
		"another file": {
			EmailAttachment{File: file.File, SHA256: strings.Repeat("0", 64)},
			"ada@example.com",
			models.CodeHandlerError,
		},
		"a name with a path": {
			EmailAttachment{File: file.File, Name: "../x"},
			"ada@example.com",
			models.CodePayloadInvalid,
		},
		"another recipient": {file, "eve@example.com", models.CodeAuthenticationFailed},
	} {
		p := Email{To: []string{c.to}, Subject: "s", Text: "t", Attachments: []EmailAttachment{c.file}}
		failed := b.run(p)
		assert.Equal(t, models.JobFailed, failed.State, name)
		assert.Equal(t, c.code, failed.Code, "%s: %s", name, failed.Error)
	}
	assert.Empty(t, server.messages())
	p := Email{To: []string{"ada@example.com"}, Subject: "s", Text: "t", Attachments: []EmailAttachment{file}}
	assert.Equal(t, models.JobCompleted, b.run(p).State)
	_, err := h.deliverAs(t.Context(), "", &p, "id@example.com")
	require.ErrorContains(t, err, "organization", "a task has none")
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org,
		Email{To: p.To, Subject: "s", Text: "t", Attachments: make([]EmailAttachment, 11)}, queue.JobOptions{})
	require.Error(t, err)
}

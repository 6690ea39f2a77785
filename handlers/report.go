package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"gocloud.dev/blob"

	"github.com/daybook-dev/daybook/internal/moving/export"
	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// ReportKind says what a report is about.
type ReportKind string

// The reports.
const (
	// ReportTrialBalance has a row for each account and currency.
	ReportTrialBalance ReportKind = "trial_balance"
	// ReportAccountLedger has a row for each entry to an account, with the running balance.
	ReportAccountLedger ReportKind = "account_ledger"
	// ReportJournal has a row for each entry, with the columns of `daybook export --format csv`.
	ReportJournal ReportKind = "journal"
)

// ReportFormat says what a report is written as.
type ReportFormat string

// The formats.
const (
	ReportCSV  ReportFormat = "csv"
	ReportHTML ReportFormat = "html"
	ReportPDF  ReportFormat = "pdf"
)

// Report is the payload of the type report: a file about the organization of the job.
type Report struct {
	// Kind is trial_balance, account_ledger or journal.
	Kind ReportKind `json:"kind"`
	// Account is the account's code; required for account_ledger, and for nothing else.
	Account string `json:"account,omitempty"`
	// Currency leaves other currencies out; empty: all. Not for journal.
	Currency string `json:"currency,omitempty"`
	// From and To are the first and the last posting date, YYYY-MM-DD; empty: no limit. What was
	// posted before From makes up the opening balances.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Format is csv, html or pdf; empty: csv.
	Format ReportFormat `json:"format,omitempty"`
	// Mail sends the file when it is written; nil: it is sent to no address.
	Mail *ReportMail `json:"mail,omitempty"`
}

// JobType is "report".
func (Report) JobType() string { return "report" }

// ReportPolicy is the type's policy: 3 attempts, 30 and 60 seconds between them, each of up to 5
// minutes.
func ReportPolicy() jobs.Policy {
	return jobs.Policy{
		MaxAttempts: 3, Timeout: 5 * time.Minute, Base: 30 * time.Second, Factor: 2, Cap: 2 * time.Minute,
		Parallel: 2,
	}
}

// ReportConfig says where reports are written.
type ReportConfig struct {
	// Bucket is the URL of a bucket for gocloud.dev/blob, such as
	// file:///var/lib/daybook/reports?no_tmp_dir=1. For another storage than files, the program has
	// to import its driver.
	Bucket string `env:"REPORTS_BUCKET"`
	// MaxRows is how many rows the ledger of an account may have, which is held in memory, and any
	// report in HTML; default 100,000. A journal in CSV has no limit.
	MaxRows int `env:"REPORTS_MAX_ROWS"`
	// MaxPDFRows is how many rows a report in PDF may have; default 20,000.
	MaxPDFRows int `env:"REPORTS_MAX_PDF_ROWS"`
	// Templates is a directory with templates of HTML, for the formats html and pdf: report.html for
	// all kinds, and trial_balance.html, account_ledger.html and journal.html. What is not there is
	// built in; empty: all of it.
	Templates string `env:"REPORTS_TEMPLATES"`
	// Font is a file with the TrueType font of PDF; empty: DejaVu Sans.
	Font string `env:"REPORTS_FONT"`
	// MailTo are the addresses to which reports may be sent, and domains such as @example.com; * is
	// all. Empty: none.
	MailTo []string `env:"REPORTS_MAIL_TO"`
}

// ReportHandler works jobs of the type report. It is safe for concurrent use.
type ReportHandler struct {
	pool      *pgxpool.Pool
	bucket    *blob.Bucket
	config    ReportConfig
	templates *report.Templates
	font      []byte
}

// NewReport opens the bucket and reads the templates, and returns a handler that reads from the
// pool, which stays the caller's to close.
func NewReport(ctx context.Context, pool *pgxpool.Pool, c ReportConfig) (*ReportHandler, error) {
	if pool == nil {
		return nil, errors.New("report: a pool is required, for what it reports of")
	}
	if c.MaxRows < 0 || c.MaxPDFRows < 0 {
		return nil, errors.New("report: REPORTS_MAX_ROWS and REPORTS_MAX_PDF_ROWS must not be negative")
	}
	h, err := newReport(pool, c)
	if err != nil {
		return nil, err
	}
	h.bucket, err = openBucket(ctx, "report: REPORTS_BUCKET", c.Bucket)
	return h, err
}

// newReport returns a handler without its bucket.
func newReport(pool *pgxpool.Pool, c ReportConfig) (*ReportHandler, error) {
	c.MaxRows, c.MaxPDFRows = cmp.Or(c.MaxRows, 100_000), cmp.Or(c.MaxPDFRows, 20_000)
	h := &ReportHandler{pool: pool, config: c}
	var err error
	if h.templates, err = report.OpenTemplates(c.Templates, string(ReportTrialBalance), string(ReportAccountLedger),
		string(ReportJournal)); err != nil {
		return nil, fmt.Errorf("report: REPORTS_TEMPLATES: %w", err)
	}
	if c.Font == "" {
		return h, nil
	}
	if h.font, err = os.ReadFile(c.Font); err == nil {
		err = report.CheckFont(h.font)
	}
	if err != nil {
		return nil, fmt.Errorf("report: REPORTS_FONT must name a TrueType font: %w", err)
	}
	return h, nil
}

// Close closes the bucket.
func (h *ReportHandler) Close() error { return h.bucket.Close() }

// Handle writes one report, and asks for the mail with it in the transaction that completes the
// job. CSV is made for spreadsheets: a text that a spreadsheet would read as a formula has an
// apostrophe before it. The file's key is the same for all attempts, so that a later attempt
// replaces the file of an earlier one. A file appears only when it is complete. It fails with
// TIMEOUT, RATE_LIMITED, NETWORK_ERROR (the storage) or HANDLER_ERROR (the database), which are
// tried again, and finally with PAYLOAD_INVALID (the request, or too many rows), NOT_FOUND (the
// organization, the account or the bucket) or AUTHENTICATION_FAILED (the storage refuses).
func (h *ReportHandler) Handle(ctx context.Context, job *jobs.Job[Report]) error {
	return outcome(h.write(ctx, callOf(job)))
}

// ReportResult is the result of a job of the type report.
type ReportResult struct {
	// Key is the file's in the bucket.
	Key string `json:"key"`
	// Rows counts the rows below the header, without sums.
	Rows int64 `json:"rows"`
	// Missing counts the characters that the font of a PDF does not have.
	Missing int `json:"missing_characters,omitempty"`
	// Bytes is the file's size, SHA256 its hash in hexadecimal.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// reportKey is a report's key in the bucket: the organization, the kind, and what all attempts at
// the job alone have in common.
func reportKey(c *call[Report]) string {
	sum := sha256.Sum256([]byte(c.orgID + "\n" + c.payload.JobType() + "\n" + c.key))
	return orgPrefix(c.orgID) + string(c.payload.Kind) + "/" + hex.EncodeToString(sum[:16]) + "." +
		string(c.payload.format())
}

// orgPrefix begins the keys of an organization's files in buckets: its id and a slash. % and / in
// the id are escaped, so that no organization's files are below those of another, and so are the
// dots of an id that has nothing else, which is a name for a directory itself or the one above.
func orgPrefix(org string) string {
	if strings.Trim(org, ".") == "" {
		return strings.ReplaceAll(org, ".", "%2E") + "/"
	}
	return inKey.Replace(org) + "/"
}

var inKey = strings.NewReplacer("%", "%25", "/", "%2F")

// format is the payload's format, or what it is when it names none.
func (p *Report) format() ReportFormat { return cmp.Or(p.Format, ReportCSV) }

// contentType says what a file of the format is.
func (f ReportFormat) contentType() string {
	switch f {
	case ReportHTML:
		return "text/html; charset=utf-8"
	case ReportPDF:
		return "application/pdf"
	default:
		return "text/csv; charset=utf-8"
	}
}

// span checks a payload, and reads its days.
func (p *Report) span() (from, to models.Date, err error) {
	kinds := []ReportKind{ReportTrialBalance, ReportAccountLedger, ReportJournal}
	switch {
	case !slices.Contains(kinds, p.Kind):
		return from, to, invalid("kind must be trial_balance, account_ledger or journal")
	case (p.Kind == ReportAccountLedger) != (p.Account != ""):
		return from, to, invalid("account is required for account_ledger, and for nothing else")
	case p.Kind == ReportJournal && p.Currency != "":
		return from, to, invalid("currency is not for journal, which has the entries of all")
	case !slices.Contains([]ReportFormat{ReportCSV, ReportHTML, ReportPDF}, p.format()):
		return from, to, invalid("format must be csv, html or pdf")
	}
	if err := p.Mail.check(); err != nil {
		return from, to, err
	}
	for _, day := range []struct {
		name, text string
		to         *models.Date
	}{{"from", p.From, &from}, {"to", p.To, &to}} {
		if day.text == "" {
			continue
		}
		if *day.to, err = models.ParseDate(day.text); err != nil {
			return from, to, invalid("%s is no date like 2026-01-31", day.name)
		}
	}
	if !from.IsZero() && !to.IsZero() && to.Time().Before(from.Time()) {
		return from, to, invalid("to is before from")
	}
	return from, to, nil
}

func (h *ReportHandler) write(ctx context.Context, c *call[Report]) error {
	from, to, err := c.payload.span()
	if err != nil {
		return err
	}
	if err := h.mailable(c.payload.Mail); err != nil {
		return err
	}
	if err := h.known(ctx, c); err != nil {
		return err
	}
	filter := ledgerdb.BalanceFilter{
		OrgID: c.orgID, Account: c.payload.Account, Currency: c.payload.Currency, From: from,
		To: to,
	}
	result := ReportResult{Key: reportKey(c)}
	fill, err := h.csv(ctx, c, filter)
	if c.payload.format() != ReportCSV {
		fill, err = h.printed(ctx, c, filter, &result)
	}
	if err != nil {
		return err
	}
	if err := h.upload(ctx, &result, c.payload.format().contentType(), fill); err != nil {
		return err
	}
	c.result(result)
	h.mail(c, result)
	return nil
}

// filler writes a file, and counts its rows.
type filler func(io.Writer) (int64, error)

// csv reads what a report in CSV is made of; a journal is read as it is written.
func (h *ReportHandler) csv(ctx context.Context, c *call[Report], filter ledgerdb.BalanceFilter) (filler, error) {
	if c.payload.format() != ReportCSV {
		return nil, nil
	}
	switch c.payload.Kind {
	case ReportTrialBalance:
		balances, err := ledgerdb.Balances(ctx, h.pool, filter)
		return func(w io.Writer) (int64, error) { return export.WriteTrialBalance(w, balances) },
			store.Unavailable(ctx, err)
	case ReportAccountLedger:
		ledger, err := h.ledger(ctx, filter, h.config.MaxRows)
		return func(w io.Writer) (int64, error) {
			return export.WriteAccountLedger(w, c.payload.Account, filter.From, filter.To, ledger)
		}, err
	default:
		return func(w io.Writer) (rows int64, err error) {
			err = ledgerdb.ReadExport(ctx, h.pool, ledgerdb.ExportFilter{OrgID: c.orgID, From: filter.From, To: filter.To},
				func(r *ledgerdb.ExportReader) error {
					counts, err := export.Write(ctx, r, w, export.Options{Format: export.CSV, Spreadsheet: true})
					rows = counts.Entries
					return err
				})
			return rows, store.Unavailable(ctx, err)
		}, nil
	}
}

// ledger reads the ledger of an account, which may have as many entries as are given.
func (h *ReportHandler) ledger(ctx context.Context, filter ledgerdb.BalanceFilter,
	most int,
) (ledgerdb.AccountLedger, error) {
	ledger, err := ledgerdb.ReadAccountLedger(ctx, h.pool, filter, most)
	switch {
	case err != nil:
		return ledger, store.Unavailable(ctx, err)
	case ledger.More:
		return ledger, invalid("the account has more than %d entries in this span: name a shorter one", most)
	}
	return ledger, nil
}

// known refuses an organization or account that does not exist, because its empty report would be
// misleading.
func (h *ReportHandler) known(ctx context.Context, c *call[Report]) error {
	organization, account, err := ledgerdb.AccountExists(ctx, h.pool, c.orgID, c.payload.Account)
	switch {
	case err != nil:
		return store.Unavailable(ctx, err)
	case !organization:
		return fail(models.CodeNotFound, "Daybook knows no organization %s", clip(c.orgID))
	case c.payload.Account != "" && !account:
		return fail(models.CodeNotFound, "the organization has no account %s", clip(c.payload.Account))
	}
	return nil
}

// upload writes a whole file, or nothing.
func (h *ReportHandler) upload(ctx context.Context, result *ReportResult, contentType string, fill filler) error {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	file, err := h.bucket.NewWriter(ctx, result.Key, &blob.WriterOptions{ContentType: contentType})
	if err != nil {
		return storageFailure(err)
	}
	counted := &counter{to: file, sum: sha256.New()}
	if result.Rows, err = fill(counted); err != nil {
		abandon() // before the file is closed, which would complete it
		_ = file.Close()
		if counted.failed != nil {
			return storageFailure(counted.failed)
		}
		return err
	}
	if err := file.Close(); err != nil {
		return storageFailure(err)
	}
	result.Bytes, result.SHA256 = counted.bytes, hex.EncodeToString(counted.sum.Sum(nil))
	return nil
}

// counter measures what is written.
type counter struct {
	to     io.Writer
	sum    hash.Hash
	bytes  int64
	failed error
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.sum.Write(b[:n])
	c.bytes += int64(n)
	if err != nil {
		c.failed = err
	}
	return n, err
}

func init() {
	builtins = append(builtins, builtin{name: "report", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[ReportConfig](s)
		if err != nil {
			return err
		}
		if config.Bucket == "" {
			return notConfiguredError("set DAYBOOK_REPORTS_BUCKET, such as file:///var/lib/daybook/reports?no_tmp_dir=1")
		}
		h, err := NewReport(context.Background(), s.Pool, config)
		if err != nil {
			return err
		}
		s.onClose(h.Close)
		jobs.Register(r, s.policy(ReportPolicy()), h.Handle)
		return nil
	}})
}

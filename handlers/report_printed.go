package handlers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// maxPrintedHTML bounds the HTML that a template makes for a PDF, in bytes.
const maxPrintedHTML = 24 << 20

// printed reads a report in HTML or PDF. All of it is in memory, so that its rows are limited.
func (h *ReportHandler) printed(ctx context.Context, c *call[Report], filter ledgerdb.BalanceFilter,
	result *ReportResult,
) (filler, error) {
	r, err := h.read(ctx, c, filter)
	if err != nil {
		return nil, err
	}
	if c.payload.format() == ReportHTML {
		return func(w io.Writer) (int64, error) { return r.Rows(), templateFailure(h.templates.Write(w, r)) }, nil
	}
	return func(w io.Writer) (int64, error) {
		var page printedPage
		if err := templateFailure(h.templates.Write(&page, r)); err != nil {
			return 0, err
		}
		var err error
		result.Missing, err = report.PDF{Font: h.font, MadeAt: time.Now()}.Write(w, &page.html)
		return r.Rows(), err
	}, nil
}

// printedPage holds the HTML of a report in memory: a container's file system may be read-only.
type printedPage struct{ html bytes.Buffer }

func (p *printedPage) Write(b []byte) (int, error) {
	if p.html.Len()+len(b) > maxPrintedHTML {
		return 0, invalid("the report makes more than %d MiB of HTML, which is more than can be printed: name a shorter span", maxPrintedHTML>>20)
	}
	return p.html.Write(b)
}

// read reads what a report shows.
func (h *ReportHandler) read(ctx context.Context, c *call[Report],
	filter ledgerdb.BalanceFilter,
) (*report.Report, error) {
	p := &c.payload
	name, err := store.OrganizationName(ctx, h.pool, c.orgID)
	if err != nil {
		return nil, store.Unavailable(ctx, err)
	}
	r := &report.Report{
		Kind: string(p.Kind), Organization: c.orgID, Name: cmp.Or(name, c.orgID), Account: p.Account, From: p.From,
		To:     p.To,
		MadeAt: time.Now().UTC().Format("2006-01-02 15:04 UTC"),
	}
	most := h.config.MaxRows
	if p.format() == ReportPDF {
		most = min(most, h.config.MaxPDFRows)
	}
	switch p.Kind {
	case ReportTrialBalance:
		balances, err := ledgerdb.Balances(ctx, h.pool, filter)
		if err != nil {
			return nil, store.Unavailable(ctx, err)
		}
		if len(balances) > most {
			return nil, tooLong(most)
		}
		r.TrialBalance(balances)
	case ReportAccountLedger:
		ledger, err := h.ledger(ctx, filter, most)
		if err != nil {
			return nil, err
		}
		r.AccountLedger(ledger)
	default:
		err := ledgerdb.ReadExport(ctx, h.pool, ledgerdb.ExportFilter{OrgID: c.orgID, From: filter.From, To: filter.To},
			func(read *ledgerdb.ExportReader) error {
				return r.Journal(ctx, read, most)
			})
		if errors.Is(err, report.ErrTooLong) {
			return nil, tooLong(most)
		}
		if err != nil {
			return nil, store.Unavailable(ctx, err)
		}
	}
	return r, nil
}

func tooLong(most int) error {
	return invalid("the report has more than %d rows in this span: name a shorter one, or let the format be csv", most)
}

// templateFailure says that a template failed, which no later attempt changes; a failure of the
// output stays itself.
func templateFailure(err error) error {
	if err == nil {
		return nil
	}
	if f := report.TemplateError(err); f != nil {
		return failFinally("the template of the report fails: correct it (%sREPORTS_TEMPLATES), and retry the job: %s",
			environmentPrefix, clip(f.Error()))
	}
	return err
}

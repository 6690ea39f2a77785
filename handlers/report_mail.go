package handlers

import (
	"context"
	"fmt"
	netmail "net/mail"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// ReportMail asks for a mail with the report: a job of the type email, made in the transaction that
// completes the report's.
type ReportMail struct {
	// To and Cc are the recipients, as in Email. ReportConfig.MailTo must name each of them.
	To []string `json:"to"`
	Cc []string `json:"cc,omitempty"`
	// Subject is required, on one line.
	Subject string `json:"subject"`
	// Text is the message; empty: a line that says what is attached.
	Text string `json:"text,omitempty"`
}

// check refuses a mail that could not be sent.
func (m *ReportMail) check() error {
	if m == nil {
		return nil
	}
	if m.Subject == "" || hasControl(m.Subject) {
		return invalid("mail: subject is required, on one line")
	}
	if err := m.email(nil).Check(); err != nil {
		return invalid("mail: %w", err)
	}
	return nil
}

// email is the message with these files.
func (m *ReportMail) email(files []EmailAttachment) Email {
	text := m.Text
	if text == "" {
		text = "The report is attached."
	}
	return Email{To: m.To, Cc: m.Cc, Subject: m.Subject, Text: text, Attachments: files}
}

// mailable refuses recipients to which no report may be sent.
func (h *ReportHandler) mailable(m *ReportMail) error {
	if m == nil {
		return nil
	}
	return allowedTo(h.config.MailTo, m.To, m.Cc)
}

// mail has the file sent when the job completes: at most one mail is asked for, whatever becomes of
// the attempt.
func (h *ReportHandler) mail(c *call[Report], result ReportResult) {
	m := c.payload.Mail
	if m == nil {
		return
	}
	file := EmailAttachment{
		File: result.Key, Name: fmt.Sprintf("%s%s", strings.ReplaceAll(string(c.payload.Kind), "_", "-"),
			path.Ext(result.Key)),
		Type: c.payload.format().contentType(), SHA256: result.SHA256,
	}
	c.inTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := queue.EnqueueJob(ctx, tx, c.orgID, m.email([]EmailAttachment{file}), queue.JobOptions{
			IdempotencyKey: "report-mail-" + c.id, Links: []queue.Link{{Kind: "report", ID: c.id}},
		})
		return err
	})
}

// allowedTo refuses recipients that a list of addresses and domains does not have.
func allowedTo(allowed []string, lists ...[]string) error {
	for _, list := range lists {
		for _, text := range list {
			a, err := netmail.ParseAddress(text)
			if err != nil {
				return invalid("a recipient is not like name@example.com or Name <name@example.com>")
			}
			_, domain, _ := strings.Cut(a.Address, "@")
			if !slices.ContainsFunc(allowed, func(s string) bool {
				s = strings.TrimSpace(s)
				return s == "*" || strings.EqualFold(s, a.Address) || strings.EqualFold(s, "@"+domain)
			}) {
				return fail(models.CodeAuthenticationFailed,
					"reports may not be sent to %s: %sREPORTS_MAIL_TO names the addresses and domains", clip(a.Address),
					environmentPrefix)
			}
		}
	}
	return nil
}

package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// Email is the payload of the type email: one message by SMTP, with a text, HTML, or both, or by a
// template.
type Email struct {
	// To and Cc are the recipients, as "name@example.com" or "Name <name@example.com>"; To has at
	// least one. JSON may have one text instead of a list.
	To Recipients `json:"to"`
	Cc Recipients `json:"cc,omitempty"`
	// From is the sender; empty: EmailConfig.From. Another one must be in EmailConfig.Senders.
	From string `json:"from,omitempty"`
	// ReplyTo is one address; empty: answers go to the sender. JSON may call it replyTo instead.
	ReplyTo      string `json:"reply_to,omitempty"`
	ReplyToCamel string `json:"replyTo,omitempty"`
	// Subject is required without a template, and replaces that of a template.
	Subject string `json:"subject,omitempty"`
	// Text and HTML are the message; at least one of them is required without a template.
	Text string `json:"text,omitempty"`
	HTML string `json:"html,omitempty"`
	// Template names the template that makes the message of TemplateParams, instead of Text and HTML.
	// See OpenMailTemplates.
	Template       string         `json:"template,omitempty"`
	TemplateParams TemplateParams `json:"templateParams,omitempty"`
	// Attachments are files of the bucket of reports; not for tasks, which have no organization.
	Attachments []EmailAttachment `json:"attachments,omitempty"`
}

// JobType is "email".
func (Email) JobType() string { return "email" }

// EmailPolicy is the type's policy: 3 attempts, 5 and 10 minutes between them, each of up to a
// minute.
func EmailPolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: time.Minute, Base: 5 * time.Minute, Factor: 2, Cap: 20 * time.Minute}
}

// EmailTLS says how a connection to an SMTP server is encrypted.
type EmailTLS string

// The ways to encrypt.
const (
	// EmailSTARTTLS encrypts after the greeting; if the server does not offer that, nothing is sent.
	EmailSTARTTLS EmailTLS = "starttls"
	// EmailImplicitTLS encrypts from the first byte.
	EmailImplicitTLS EmailTLS = "tls"
	// EmailPlain does not encrypt, for a server on the same machine.
	EmailPlain EmailTLS = "none"
)

// EmailConfig says by which server messages are sent, and from whom.
type EmailConfig struct {
	// Host is the server's name or address; required. Port is 587 by default, 465 with
	// EmailImplicitTLS, 25 with EmailPlain.
	Host string `env:"SMTP_HOST"`
	Port int    `env:"SMTP_PORT"`
	// From is the sender of every message, as "Name <name@example.com>"; required.
	From string `env:"SMTP_FROM"`
	// Encryption is EmailSTARTTLS by default.
	Encryption EmailTLS `env:"SMTP_TLS"`
	// Username is for the login, with the password that Secrets finds; empty: no login.
	Username string `env:"SMTP_USERNAME"`
	// Hello is the name in the greeting of the server (EHLO); default the machine's name.
	Hello string `env:"SMTP_HELLO"`
	// Timeout bounds the sending of a message; default 45 s. It should be shorter than the policy's.
	Timeout time.Duration `env:"SMTP_TIMEOUT"`
	// MaxRecipients is how many To and Cc may have together; default 50.
	MaxRecipients int `env:"SMTP_MAX_RECIPIENTS"`
	// Senders are the addresses, and as @example.com the domains, that a payload may name as sender,
	// besides From; empty: none.
	Senders []string `env:"SMTP_SENDERS"`
	// ReplyTo are the addresses and domains that a payload may name for answers; empty: all.
	ReplyTo []string `env:"SMTP_REPLY_TO"`
	// Templates is the directory of the templates that payloads name; empty: there are those that
	// come with Daybook.
	Templates string `env:"MAIL_TEMPLATES"`
	// Organizations are those whose jobs may send email with this sender and its password; empty:
	// all.
	Organizations []string `env:"SMTP_ORGS"`
	// MaxAttached bounds the attachments of a message together, in bytes; default 10 MiB.
	MaxAttached int64 `env:"SMTP_MAX_ATTACHED"`
	// ReportsTo are the recipients of messages with attachments: ReportConfig.MailTo.
	ReportsTo []string `env:"REPORTS_MAIL_TO"`
	// Reports is the bucket of the attachments, which stays the caller's to close; nil: there are
	// none.
	Reports *blob.Bucket `env:"-"`
	// Secrets finds the password.
	Secrets Secrets `env:"-"`
	// TLS is the configuration of encrypted connections; default Go's, with the system's authorities.
	TLS *tls.Config `env:"-"`
}

// EmailHandler works jobs and tasks of the type email. It is safe for concurrent use.
type EmailHandler struct {
	config    EmailConfig
	from      *netmail.Address
	domain    string
	templates *MailTemplates
}

// NewEmail returns a handler. The handler opens a connection to the server for each message.
func NewEmail(c EmailConfig) (*EmailHandler, error) {
	c.Encryption = cmp.Or(c.Encryption, EmailSTARTTLS)
	ports := map[EmailTLS]int{EmailSTARTTLS: 587, EmailImplicitTLS: 465, EmailPlain: 25}
	if ports[c.Encryption] == 0 {
		return nil, fmt.Errorf("email: SMTP_TLS must be starttls, tls or none, not %q", c.Encryption)
	}
	c.Port = cmp.Or(c.Port, ports[c.Encryption])
	c.Timeout = cmp.Or(c.Timeout, 45*time.Second)
	c.MaxRecipients = cmp.Or(c.MaxRecipients, 50)
	c.MaxAttached = cmp.Or(c.MaxAttached, 10<<20)
	switch {
	case c.Host == "":
		return nil, errors.New("email: SMTP_HOST is required")
	case c.Port < 1 || c.Port > 65535:
		return nil, fmt.Errorf("email: SMTP_PORT must be from 1 to 65535, not %d", c.Port)
	case c.Timeout < 0 || c.MaxRecipients < 0 || c.MaxAttached < 0:
		return nil, errors.New("email: SMTP_TIMEOUT, SMTP_MAX_RECIPIENTS and SMTP_MAX_ATTACHED must not be negative")
	}
	from, err := netmail.ParseAddress(c.From)
	if err != nil || hasControl(c.From) {
		return nil, errors.New("email: SMTP_FROM is required, and must be one address, such as Shop <shop@example.com>")
	}
	for _, list := range [][]string{c.Senders, c.ReplyTo} {
		for _, allowed := range list {
			if !strings.Contains(allowed, "@") || hasControl(allowed) {
				return nil, fmt.Errorf("email: SMTP_SENDERS and SMTP_REPLY_TO have addresses such as desk@example.com and "+
					"domains such as @example.com, not %q", allowed)
			}
		}
	}
	templates, err := OpenMailTemplates(c.Templates)
	if err != nil {
		return nil, fmt.Errorf("email: MAIL_TEMPLATES: %w", err)
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	return &EmailHandler{config: c, from: from, domain: domain, templates: templates}, nil
}

// Handle sends one message. A message that is sent again, because the server did not say whether it
// had accepted it, has the same Message-ID. It fails with UPSTREAM_5XX (the server answered 4xx),
// TIMEOUT or NETWORK_ERROR, which are tried again, and finally with AUTHENTICATION_FAILED (the
// login was refused, or the password is missing), NOT_FOUND (there is no such recipient),
// PAYLOAD_INVALID (addresses, subject or content) or HANDLER_ERROR (every other answer 5xx).
func (h *EmailHandler) Handle(ctx context.Context, job *jobs.Job[Email]) error {
	return outcome(h.deliver(ctx, callOf(job)))
}

// EmailResult is the result of a job of the type email.
type EmailResult struct {
	// MessageID is the header Message-ID, without the angle brackets.
	MessageID string `json:"message_id"`
	// Recipients counts To and Cc.
	Recipients int `json:"recipients"`
}

func (h *EmailHandler) deliver(ctx context.Context, c *call[Email]) error {
	if err := h.sends(c.orgID); err != nil {
		return err
	}
	sent, err := h.deliverAs(ctx, c.orgID, &c.payload, h.messageID(c))
	if err != nil {
		return err
	}
	c.result(sent)
	return nil
}

// sends refuses an organization that may not send.
func (h *EmailHandler) sends(org string) error {
	if !boundTo(h.config.Organizations, org) {
		return fail(models.CodeAuthenticationFailed,
			"the sender is not bound to the organization %s: %sSMTP_ORGS names those that may send", clip(org),
			environmentPrefix)
	}
	return nil
}

// boundTo reports whether a list of organizations has one; an empty list has all.
func boundTo(organizations []string, org string) bool {
	return len(organizations) == 0 ||
		slices.ContainsFunc(organizations, func(o string) bool { return strings.TrimSpace(o) == org })
}

// deliverAs sends one message of an organization with a Message-ID.
func (h *EmailHandler) deliverAs(ctx context.Context, org string, p *Email, id string) (EmailResult, error) {
	composed, err := h.compose(*p)
	if err != nil {
		return EmailResult{}, err
	}
	m, recipients, err := h.message(&composed, id)
	if err != nil {
		return EmailResult{}, err
	}
	if err := h.attach(ctx, m, org, p); err != nil {
		return EmailResult{}, err
	}
	if err := h.send(ctx, m); err != nil {
		return EmailResult{}, err
	}
	return EmailResult{MessageID: id, Recipients: recipients}, nil
}

// messageID is the same for all attempts at a job, and another for every other job.
func (h *EmailHandler) messageID(c *call[Email]) string {
	return h.idOf(c.orgID + "\n" + c.payload.JobType() + "\n" + c.key)
}

// idOf is the Message-ID that a name leads to.
func (h *EmailHandler) idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16]) + "@" + h.domain
}

func init() {
	builtins = append(builtins, builtin{name: "email", register: func(r *jobs.Registry, s *environment) error {
		h, err := emailOf(s)
		if err != nil {
			return err
		}
		jobs.Register(r, s.policy(EmailPolicy()), h.Handle)
		return nil
	}, process: func(r *tasks.Registry, s *environment) error {
		h, err := emailOf(s)
		if err != nil {
			return err
		}
		tasks.Register(r, "email", s.taskPolicy(EmailPolicy()), h.Process)
		return nil
	}})
}

// emailOf is the handler that the environment configures.
func emailOf(s *environment) (*EmailHandler, error) {
	config, err := parse[EmailConfig](s)
	if err != nil {
		return nil, err
	}
	if config.Host == "" {
		return nil, notConfiguredError("set DAYBOOK_SMTP_HOST and DAYBOOK_SMTP_FROM")
	}
	config.Secrets = s.secrets
	if address := s.Environment[environmentPrefix+"REPORTS_BUCKET"]; address != "" {
		if config.Reports, err = openBucket(context.Background(), "email: REPORTS_BUCKET", address); err != nil {
			return nil, err
		}
		s.onClose(config.Reports.Close)
	}
	return NewEmail(config)
}

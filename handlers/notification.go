package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
)

// Notification is the payload of the type notification: one message by several channels, each of
// which sends at most once.
type Notification struct {
	FormID       string `json:"formId,omitempty"`
	SubmissionID string `json:"submissionId,omitempty"`
	// EventType is submission_receipt, status_change or reminder; it is the name of the template that
	// makes the email.
	EventType string `json:"eventType"`
	// At least one channel is required.
	Email   *NotificationEmail   `json:"email,omitempty"`
	SMS     *SMS                 `json:"sms,omitempty"`
	Slack   *NotificationSlack   `json:"slack,omitempty"`
	Discord *NotificationDiscord `json:"discord,omitempty"`
	Push    *NotificationPush    `json:"push,omitempty"`
	// Metadata is the application's own, for its templates; whatever JSON it is.
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// NotificationEmail is the email of a notification.
type NotificationEmail struct {
	// To is one address, or in JSON a list.
	To Recipients `json:"to"`
	// Subject replaces the template's.
	Subject string `json:"subject,omitempty"`
	// Template is another template than the one of the event.
	Template string `json:"template,omitempty"`
	// TemplateParams are the template's parameters. Besides, it has formId, submissionId, eventType
	// and metadata.
	TemplateParams TemplateParams `json:"templateParams,omitempty"`
	// From and ReplyTo are as in Email.
	From    string `json:"from,omitempty"`
	ReplyTo string `json:"replyTo,omitempty"`
}

// JobType is "notification".
func (Notification) JobType() string { return "notification" }

// NotificationPolicy is the type's policy: 3 attempts, 5 and 10 minutes between them, each of up to
// 3 minutes for all channels.
func NotificationPolicy() jobs.Policy {
	return jobs.Policy{
		MaxAttempts: 3, Timeout: 3 * time.Minute, Base: 5 * time.Minute, Factor: 2, Cap: 20 * time.Minute,
		Secrets: []string{"endpoint", "p256dh", "auth", "token"},
	}
}

// events are the types of events that a notification is about.
var events = map[string]bool{"submission_receipt": true, "status_change": true, "reminder": true}

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p Notification) Check() error {
	if !events[p.EventType] {
		return invalid("eventType must be submission_receipt, status_change or reminder")
	}
	if p.Email == nil && p.SMS == nil && p.Slack == nil && p.Discord == nil && p.Push == nil {
		return invalid("there is no channel: give email, sms, slack, discord or push")
	}
	checks := map[string]func() error{}
	if p.Email != nil {
		checks["email"] = func() error { return p.email().Check() }
	}
	if p.SMS != nil {
		checks["sms"] = p.SMS.Check
	}
	if p.Slack != nil {
		checks["slack"] = p.Slack.check
	}
	if p.Discord != nil {
		checks["discord"] = p.Discord.check
	}
	if p.Push != nil {
		checks["push"] = p.Push.check
	}
	for _, channel := range channelOrder {
		if check := checks[channel]; check != nil {
			if err := check(); err != nil {
				return invalid("%s: %w", channel, err)
			}
		}
	}
	return nil
}

// email is the notification's email as the type email has it.
func (p *Notification) email() *Email {
	e := p.Email
	params := TemplateParams{"formId": p.FormID, "submissionId": p.SubmissionID, "eventType": p.EventType}
	if len(p.Metadata) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(p.Metadata))
		decoder.UseNumber()
		var metadata any
		if decoder.Decode(&metadata) == nil {
			params["metadata"] = metadata
		}
	}
	maps.Copy(params, e.TemplateParams)
	return &Email{
		To: e.To, Subject: e.Subject, From: e.From, ReplyTo: e.ReplyTo,
		Template: cmp.Or(e.Template, p.EventType), TemplateParams: params,
	}
}

// NotificationConfig says by what notifications are sent.
type NotificationConfig struct {
	// Email and SMS send those channels; nil: the channel is not configured.
	Email *EmailHandler `env:"-"`
	SMS   *SMSHandler   `env:"-"`
	// Chat sends to Slack and Discord, Push to browsers and phones; nil: as their zero configurations
	// say.
	Chat *ChatConfig `env:"-"`
	Push *PushConfig `env:"-"`
}

// NotificationHandler works jobs of the type notification. It is safe for concurrent use.
type NotificationHandler struct {
	pool  *pgxpool.Pool
	email *EmailHandler
	sms   *SMSHandler
	chat  *chat
	push  *pusher
}

// NewNotification returns a handler that keeps what became of each channel in the pool's database,
// which stays the caller's to close.
func NewNotification(pool *pgxpool.Pool, c NotificationConfig) (*NotificationHandler, error) {
	if pool == nil {
		return nil, errors.New("notification: a pool is required, for what became of each channel")
	}
	if c.Chat == nil {
		c.Chat = &ChatConfig{}
	}
	if c.Push == nil {
		c.Push = &PushConfig{}
	}
	h := &NotificationHandler{pool: pool, email: c.Email, sms: c.SMS}
	var err error
	if h.chat, err = newChat(*c.Chat); err != nil {
		return nil, err
	}
	if h.push, err = newPusher(*c.Push); err != nil {
		return nil, err
	}
	return h, nil
}

// Close gives idle connections back. The handlers of email and SMS stay the caller's to close.
func (h *NotificationHandler) Close() error { return errors.Join(h.chat.close(), h.push.close()) }

// Handle sends by each channel that has not sent yet. A channel that fails does not keep the others
// from sending. What became of a channel is on record before the next one is asked: no later
// attempt sends by one that has sent, or has perhaps sent. The job is completed when all have sent;
// it is tried again while a channel failed that may succeed, with the code of the first of them,
// and is otherwise a dead letter with the code of the first that refused, or of which it is unknown
// whether it sent.
func (h *NotificationHandler) Handle(ctx context.Context, job *jobs.Job[Notification]) error {
	c := callOf(job)
	var left writes
	err := outcome(h.notify(ctx, c, &left))
	switch {
	case len(left) == 0:
	case err != nil:
		err = store.Noting(err, left.run)
	default:
		c.writeOnCompletion(left.run)
	}
	return err
}

func init() {
	builtins = append(builtins, builtin{name: "notification", register: func(r *jobs.Registry, s *environment) error {
		config, err := notificationOf(s)
		if err != nil {
			return err
		}
		h, err := NewNotification(s.Pool, config)
		if err != nil {
			return err
		}
		s.onClose(h.Close)
		jobs.Register(r, s.policy(NotificationPolicy()), h.Handle)
		return nil
	}})
}

// notificationOf is what the environment configures. A channel without configuration is left out;
// there must be one.
func notificationOf(s *environment) (NotificationConfig, error) {
	var config NotificationConfig
	email, err := emailOf(s)
	if left, err := leftOut(err); err != nil {
		return config, err
	} else if !left {
		config.Email = email
	}
	sms, err := smsOf(s)
	if left, err := leftOut(err); err != nil {
		return config, err
	} else if !left {
		config.SMS = sms
	}
	chat, err := parse[ChatConfig](s)
	if err != nil {
		return config, err
	}
	push, err := parse[PushConfig](s)
	if err != nil {
		return config, err
	}
	chat.Secrets, push.Secrets = s.secrets, s.secrets
	config.Chat, config.Push = &chat, &push
	named := false
	for _, kind := range namedChannels {
		named = named || s.hasSecrets(kind.variable, kind.extension)
	}
	if config.Email == nil && config.SMS == nil && !named {
		return config, notConfiguredError("set DAYBOOK_SMTP_HOST and DAYBOOK_SMTP_FROM for email, " +
			"DAYBOOK_TWILIO_ACCOUNT_SID and DAYBOOK_SMS_FROM for sms, or a secret DAYBOOK_SLACK_SECRET_…, " +
			"DAYBOOK_DISCORD_SECRET_…, DAYBOOK_VAPID_SECRET_… or DAYBOOK_FCM_SECRET_…")
	}
	return config, nil
}

// namedSecret is a kind of secret that payloads name.
type namedSecret struct{ variable, extension string }

// The secrets of channels.
var (
	slackSecret   = namedSecret{"SLACK_SECRET_", ".slack"}
	discordSecret = namedSecret{"DISCORD_SECRET_", ".discord"}
	vapidSecret   = namedSecret{"VAPID_SECRET_", ".vapid"}
	fcmSecret     = namedSecret{"FCM_SECRET_", ".fcm"}
	namedChannels = []namedSecret{slackSecret, discordSecret, vapidSecret, fcmSecret}
)

// of finds a secret of the kind; an empty name is the one for payloads that name none.
func (n namedSecret) of(s Secrets, org, name string) (string, error) {
	return s.named(org, n.variable, strings.TrimSpace(cmp.Or(name, defaultSecret)), n.extension)
}

// leftOut reports whether a type has no configuration; any other error stays one.
func leftOut(err error) (bool, error) {
	if _, missing := errors.AsType[notConfiguredError](err); missing {
		return true, nil
	}
	return false, err
}

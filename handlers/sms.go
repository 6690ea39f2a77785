package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// SMS is the payload of the type sms: one text message by Twilio's API. Its sender is
// SMSConfig.From.
type SMS struct {
	// To is the recipient's number with its country: +4915112345678.
	To string `json:"to"`
	// Body has up to 1600 characters.
	Body string `json:"body"`
}

// JobType is "sms".
func (SMS) JobType() string { return "sms" }

// SMSPolicy is the type's policy: 3 attempts, 5 and 10 minutes between them, each of up to 30 s.
func SMSPolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: 30 * time.Second, Base: 5 * time.Minute, Factor: 2, Cap: 20 * time.Minute}
}

// SMSConfig says by whose account messages are sent, and from whom.
type SMSConfig struct {
	// AccountSID is Twilio's name of the account, AC…; required.
	AccountSID string `env:"TWILIO_ACCOUNT_SID"`
	// APIKeySID logs in instead of the account, SK…; empty: the account. Secrets finds the token of
	// the account, or the key's secret.
	APIKeySID string `env:"TWILIO_API_KEY_SID"`
	// From is the sender of every message: a number, a name that the recipient's country allows, or a
	// messaging service, MG…; required.
	From string `env:"SMS_FROM"`
	// URL is where Twilio's API is; default https://api.twilio.com.
	URL string `env:"TWILIO_URL"`
	// Timeout bounds a request with its answer; default 20 s. It should be shorter than the policy's.
	Timeout time.Duration `env:"SMS_TIMEOUT"`
	// Organizations are those whose jobs may send messages; empty: all.
	Organizations []string `env:"SMS_ORGS"`
	// Secrets finds the token.
	Secrets Secrets `env:"-"`
}

// SMSHandler works jobs and tasks of the type sms. It is safe for concurrent use.
type SMSHandler struct {
	config SMSConfig
	upstream
}

// sid is what Twilio names things by.
var sid = regexp.MustCompile(`^[A-Z]{2}[0-9a-zA-Z]{1,62}$`)

// NewSMS returns a handler.
func NewSMS(c SMSConfig) (*SMSHandler, error) {
	c.URL = strings.TrimRight(cmp.Or(c.URL, "https://api.twilio.com"), "/")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	switch {
	case !sid.MatchString(c.AccountSID):
		return nil, errors.New("sms: TWILIO_ACCOUNT_SID is required, and is like AC0123…")
	case c.APIKeySID != "" && !sid.MatchString(c.APIKeySID):
		return nil, errors.New("sms: TWILIO_API_KEY_SID must be like SK0123…")
	case strings.TrimSpace(c.From) == "" || hasControl(c.From):
		return nil, errors.New("sms: SMS_FROM is required: a number, a name, or a messaging service such as MG0123…")
	case !isSafe(c.URL):
		return nil, errors.New("sms: TWILIO_URL must be an address of https, or of this machine, without user and password")
	case c.Timeout < 0:
		return nil, errors.New("sms: SMS_TIMEOUT must not be negative")
	}
	return &SMSHandler{config: c, upstream: newUpstream(c.Timeout)}, nil
}

// Close gives idle connections back.
func (h *SMSHandler) Close() error { return h.close() }

// Handle sends one message. Twilio does not recognize a repeated request: a message of which no
// answer came in time may be sent twice. It fails with RATE_LIMITED, UPSTREAM_5XX, TIMEOUT or
// NETWORK_ERROR, which are tried again, and finally with AUTHENTICATION_FAILED (the login was
// refused, or the token is missing), NOT_FOUND (there is no such recipient), PAYLOAD_INVALID or
// HANDLER_ERROR (every other refusal).
func (h *SMSHandler) Handle(ctx context.Context, job *jobs.Job[SMS]) error {
	c := callOf(job)
	if err := h.sends(c.orgID); err != nil {
		return outcome(err)
	}
	sent, err := h.deliver(ctx, &c.payload)
	if err != nil {
		return outcome(err)
	}
	c.result(sent)
	return nil
}

// sends refuses an organization that may not send.
func (h *SMSHandler) sends(org string) error {
	if !boundTo(h.config.Organizations, org) {
		return fail(models.CodeAuthenticationFailed,
			"the sender is not bound to the organization %s: %sSMS_ORGS names those that may send", clip(org),
			environmentPrefix)
	}
	return nil
}

// SMSResult is the result of a job, and the worker_payload of a task, of the type sms.
type SMSResult struct {
	// MessageSID is Twilio's name of the message, SM…, Status what has become of it so far: queued or
	// accepted.
	MessageSID string `json:"message_sid"`
	Status     string `json:"status"`
}

// number is a telephone number with its country.
var number = regexp.MustCompile(`^\+[1-9][0-9]{4,14}$`)

// maxSMS is how many characters Twilio takes.
const maxSMS = 1600

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p SMS) Check() error {
	switch {
	case !number.MatchString(p.To):
		return invalid("to is not a number with its country, such as +4915112345678")
	case strings.TrimSpace(p.Body) == "":
		return invalid("body is empty")
	case utf8.RuneCountInString(p.Body) > maxSMS:
		return invalid("body has %d characters and may have %d", utf8.RuneCountInString(p.Body), maxSMS)
	}
	return nil
}

// deliver sends one message.
func (h *SMSHandler) deliver(ctx context.Context, p *SMS) (SMSResult, error) {
	if err := p.Check(); err != nil {
		return SMSResult{}, err
	}
	token, err := h.config.Secrets.find(environmentPrefix+"TWILIO_AUTH_TOKEN", "twilio.token")
	if errors.Is(err, errNoSecret) {
		return SMSResult{}, fail(models.CodeAuthenticationFailed, "the token for Twilio: %w", err)
	}
	if err != nil {
		return SMSResult{}, err
	}
	form := url.Values{"To": {p.To}, "Body": {p.Body}}
	sender := "From"
	if strings.HasPrefix(h.config.From, "MG") && sid.MatchString(h.config.From) {
		sender = "MessagingServiceSid"
	}
	form.Set(sender, h.config.From)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		h.config.URL+"/2010-04-01/Accounts/"+h.config.AccountSID+"/Messages.json", strings.NewReader(form.Encode()))
	if err != nil {
		return SMSResult{}, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.SetBasicAuth(cmp.Or(h.config.APIKeySID, h.config.AccountSID), token)
	ctx, sending := span.Start(ctx,
		span.Span{
			Name: "send sms", Kind: span.Client,
			Attrs: []span.Attr{{Key: "server.address", Value: r.URL.Hostname()}},
		})
	answer, err := h.ask(r.WithContext(ctx))
	if err != nil {
		sending.End(err)
		return SMSResult{}, err
	}
	sending.Set(span.Attr{Key: "http.response.status_code", Value: answer.status})
	if answer.ok() {
		sending.End(nil)
	} else {
		sending.End(errNotSent)
	}
	if !answer.ok() {
		return SMSResult{}, refusedSMS(r, answer, token)
	}
	var sent struct{ SID, Status string }
	if json.Unmarshal(answer.body, &sent) != nil || sent.SID == "" {
		f := failFinally("%s accepted the message, and did not say under which name", origin(r.URL))
		f.unsure = true
		return SMSResult{}, f
	}
	return SMSResult{MessageSID: sent.SID, Status: sent.Status}, nil
}

// noRecipient are Twilio's codes of a recipient that is none, or does not want messages.
var noRecipient = map[int]bool{21211: true, 21214: true, 21217: true, 21610: true, 21612: true, 21614: true}

// refusedSMS says what an answer of Twilio leads to that is no success.
func refusedSMS(r *http.Request, answer reply, token string) *failure {
	var said struct {
		Code    int
		Message string
	}
	text := ""
	if json.Unmarshal(answer.body, &said) == nil && said.Message != "" {
		text = strings.ReplaceAll(said.Message, token, "***") + " (" + strconv.Itoa(said.Code) + ")"
	}
	f := judge(r, answer, text)
	if answer.status == http.StatusBadRequest && noRecipient[said.Code] {
		f.code, f.final = models.CodeNotFound, false
	}
	return f
}

func init() {
	builtins = append(builtins, builtin{name: "sms", register: func(r *jobs.Registry, s *environment) error {
		h, err := smsOf(s)
		if err == nil {
			jobs.Register(r, s.policy(SMSPolicy()), h.Handle)
		}
		return err
	}, process: func(r *tasks.Registry, s *environment) error {
		h, err := smsOf(s)
		if err == nil {
			tasks.Register(r, "sms", s.taskPolicy(SMSPolicy()), h.Process)
		}
		return err
	}})
}

// smsOf is the handler that the environment configures. It is closed with the built-in types.
func smsOf(s *environment) (*SMSHandler, error) {
	config, err := parse[SMSConfig](s)
	if err != nil {
		return nil, err
	}
	if config.AccountSID == "" {
		return nil, notConfiguredError("set DAYBOOK_TWILIO_ACCOUNT_SID and DAYBOOK_SMS_FROM")
	}
	config.Secrets = s.secrets
	h, err := NewSMS(config)
	if err == nil {
		s.onClose(h.Close)
	}
	return h, err
}

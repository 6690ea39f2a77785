package handlers

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	netmail "net/mail"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// servers are those of all channels of a notification. status answers for Twilio.
type servers struct {
	mail    *mailServer
	twilio  *receiver
	slack   *receiver
	discord *receiver
	status  atomic.Int32
}

// notifies registers the type with servers of its own.
func (b *bundle) notifies(t *testing.T, more map[string]string) *servers {
	t.Helper()
	s := &servers{mail: serveMail(t, EmailPlain)}
	s.status.Store(http.StatusCreated)
	s.twilio = receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(s.status.Load()))
		_, _ = fmt.Fprint(w, `{"sid": "SM1", "status": "queued"}`)
	})
	s.slack = receive(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"ok": true, "ts": "1700000000.1"}`)
	})
	s.discord = receive(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"id": "987"}`) })
	vars := map[string]string{
		"DAYBOOK_SMTP_HOST": s.mail.host, "DAYBOOK_SMTP_PORT": strconv.Itoa(s.mail.port), "DAYBOOK_SMTP_TLS": "none",
		"DAYBOOK_SMTP_FROM":          "Grants <grants@example.com>",
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC123", "DAYBOOK_TWILIO_AUTH_TOKEN": twilioToken, "DAYBOOK_SMS_FROM": "+4930123456",
		"DAYBOOK_TWILIO_URL": s.twilio.URL,
		"DAYBOOK_SLACK_URL":  s.slack.URL, "DAYBOOK_SLACK_SECRET_TEAM": "xoxb-t0psecret",
		"DAYBOOK_SLACK_SECRET_HOOK":   s.slack.URL + "/services/t0psecret",
		"DAYBOOK_DISCORD_SECRET_TEAM": s.discord.URL + "/api/webhooks/1/t0psecret", "DAYBOOK_SECRET_ORGS_TEAM": org,
		"DAYBOOK_SECRET_ORGS_HOOK":    org,
		"DAYBOOK_SLACK_SECRET_OTHERS": "xoxb-t0psecret", "DAYBOOK_SECRET_ORGS_OTHERS": "acme",
	}
	maps.Copy(vars, more)
	b.variables(vars)
	return s
}

// receipt is the payload as the seed's application writes it.
const receipt = `{
	"formId": "f-1", "submissionId": "s-7", "eventType": "submission_receipt",
	"email": {"to": "user@example.com", "subject": "Thank you", "templateParams": {"applicantName": "Ada", "programName": "Grants 2026"}},
	"sms": {"to": "+1234567890", "body": "We have it."}, "metadata": {"source": "web"}
}`

func notification(t *testing.T, raw string) Notification {
	t.Helper()
	var p Notification
	require.NoError(t, json.Unmarshal([]byte(raw), &p))
	return p
}

// deliveries are the states of a job's channels.
func (b *bundle) deliveries(id string) map[string]string {
	b.t.Helper()
	var raw string
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT coalesce(json_object_agg(channel, state), '{}')::text FROM daybook.job_deliveries WHERE job_id = $1`,
		id).Scan(&raw))
	states := map[string]string{}
	require.NoError(b.t, json.Unmarshal([]byte(raw), &states))
	return states
}

func TestNotificationAsItsCallersWriteIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	var id string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT (daybook.enqueue_job($1, 'notification', $2::jsonb)).job_id`,
		org, receipt).Scan(&id))
	b.work()
	done := result[NotificationResult](t, b.job(id))
	assert.Equal(t, models.DeliverySent, done.Channels["email"].State)
	assert.Equal(t, ChannelResult{State: models.DeliverySent, Attempt: 1, Reference: "SM1"}, done.Channels["sms"])
	require.Len(t, s.mail.messages(), 1)
	got := s.mail.messages()[0]
	read, err := netmail.ReadMessage(strings.NewReader(got.data))
	require.NoError(t, err)
	assert.Equal(t, "Thank you", read.Header.Get("Subject"))
	assert.Contains(t, read.Header.Get("Message-Id"), done.Channels["email"].Reference)
	for _, said := range []string{"Hello Ada,", "Grants 2026", "Reference: s-7"} {
		assert.Contains(t, got.data, said)
	}
	assert.Len(t, s.twilio.requests(), 1)
	assert.NotContains(t, b.everything(), "t0psecret")
}

func TestNotificationToSlackAndDiscord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	done := result[NotificationResult](t,
		b.run(notification(t, `{"eventType": "reminder", "slack": {"text": "Hi <@U1>", "secret": "team", "channel": "#grants"},
		"discord": {"content": "Hi @everyone", "secret": "team", "username": "Grants"}}`)))
	assert.Equal(t, "1700000000.1", done.Channels["slack"].Reference)
	assert.Equal(t, "987", done.Channels["discord"].Reference)
	asked := s.slack.requests()[0]
	assert.Equal(t, "/chat.postMessage Bearer xoxb-t0psecret", asked.path+" "+asked.header.Get("Authorization"))
	assert.JSONEq(t, `{"channel": "#grants", "text": "Hi <@U1>"}`, string(asked.body))
	asked = s.discord.requests()[0]
	assert.Equal(t, "/api/webhooks/1/t0psecret?wait=true", asked.path)
	assert.JSONEq(t, `{"content": "Hi @everyone", "username": "Grants", "allowed_mentions": {"parse": []}}`,
		string(asked.body))

	result[NotificationResult](t,
		b.run(notification(t, `{"eventType": "reminder", "slack": {"text": "Hi", "secret": "hook"}}`)))
	assert.Equal(t, "/services/t0psecret", s.slack.requests()[1].path)
	assert.NotContains(t, b.everything(), "t0psecret")
}

// A channel that has sent is not asked again when another one fails, and one that fails does not
// keep the others from sending.
func TestNotificationSendsEachChannelOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	s.status.Store(http.StatusServiceUnavailable)
	p := notification(t, receipt)
	p.Discord = &NotificationDiscord{Content: "One more", Secret: "team"}
	id := b.enqueue(p)
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeUpstream5xx, j.Code)
	assert.Contains(t, j.Error, "email: sent; sms: failed (UPSTREAM_5XX")
	assert.Contains(t, j.Error, "discord: sent")
	jittered(t, 5*time.Minute, j.Wait)

	s.status.Store(http.StatusCreated)
	b.due()
	b.work()
	done := result[NotificationResult](t, b.job(id))
	assert.Equal(t, 1, done.Channels["email"].Attempt)
	assert.Equal(t, 2, done.Channels["sms"].Attempt)
	assert.Len(t, s.mail.messages(), 1)
	assert.Len(t, s.twilio.requests(), 2)
	assert.Len(t, s.discord.requests(), 1)
}

// A channel that refuses for good is asked once; the job is a dead letter with its code. When it is
// retried by a person, only that channel is asked.
func TestNotificationRefusedChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	s.mail.onRcpt = func(string) error {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	id := b.enqueue(notification(t, receipt))
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeNotFound, j.Code)
	assert.Contains(t, j.Error, "email: refused (NOT_FOUND")
	assert.Contains(t, j.Error, "sms: sent")
	assert.Equal(t, map[string]string{"email": "refused", "sms": "sent"}, b.deliveries(id))

	s.mail.onRcpt = nil
	b.exec(`SELECT daybook.retry_job($1)`, id)
	b.work()
	assert.Equal(t, 2, result[NotificationResult](t, b.job(id)).Channels["email"].Attempt)
	assert.Len(t, s.twilio.requests(), 1)
}

// An attempt that ended while a channel was being asked: whether it has sent is not known, is said,
// and it is not asked again by itself.
func TestNotificationUnknownAfterACrash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	id := b.enqueue(notification(t, receipt))
	begun, err := store.BeginDelivery(t.Context(), b.Pool, id, "sms", 1, "mark")
	require.NoError(t, err)
	require.True(t, begun)
	b.exec(`UPDATE daybook.jobs SET run_count = 1 WHERE id = $1`, id)
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeWorkerLost, j.Code)
	assert.Contains(t, j.Error, "sms: unknown (WORKER_LOST")
	assert.Equal(t, map[string]string{"email": "sent", "sms": "unknown"}, b.deliveries(id))
	b.exec(`SELECT daybook.retry_job($1)`, id)
	b.work()
	assert.Empty(t, s.twilio.requests(), "also a retry leaves it alone")

	b.exec(`SELECT daybook.retry_job($1, 'reset')`, id)
	b.work()
	result[NotificationResult](t, b.job(id))
	assert.Len(t, s.twilio.requests(), 1, "a person has decided")
	assert.Len(t, s.mail.messages(), 1)
}

// The commit of the receipt hangs, as it does while a synchronous standby is missing, until the
// handler has given up: it has not asked the channel, and the next attempt does.
func TestNotificationWhoseReceiptHangs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	b.exec(`
CREATE TABLE public.hangs AS SELECT 1 AS n;
CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  WHILE EXISTS (SELECT FROM public.hangs) LOOP
    BEGIN PERFORM pg_sleep(0.02); EXCEPTION WHEN query_canceled THEN NULL; END;
  END LOOP; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON daybook.job_deliveries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang()`)
	p := notification(t, receipt)
	p.Email = nil
	id := b.enqueue(p)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		b.work()
	}()
	require.Eventually(t, func() bool {
		select {
		case <-worked:
			return true
		default:
		}
		return b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%it was not asked%'`) == 1
	}, time.Minute, 20*time.Millisecond, "the end of the attempt waits for the receipt")
	b.exec(`DELETE FROM public.hangs`)
	<-worked
	assert.Equal(t, map[string]string{"sms": "failed"}, b.deliveries(id))
	assert.Equal(t, models.JobPending, b.job(id).State)
	assert.Empty(t, s.twilio.requests())

	b.due()
	b.work()
	assert.Equal(t, models.DeliverySent, result[NotificationResult](t, b.job(id)).Channels["sms"].State)
	assert.Len(t, s.twilio.requests(), 1)
}

// The database does not take that a channel has sent, and another channel fails: the end of the
// attempt has another chance to write it.
func TestNotificationReceiptOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, nil)
	s.status.Store(http.StatusServiceUnavailable)
	b.exec(`
CREATE SEQUENCE public.ended;
CREATE FUNCTION refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('public.ended') = 1 THEN RAISE 'not now'; END IF; RETURN NULL; END $$;
CREATE TRIGGER refuse_one AFTER UPDATE ON daybook.job_deliveries FOR EACH ROW EXECUTE FUNCTION refuse_one()`)
	id := b.enqueue(notification(t, receipt))
	b.work()
	assert.Equal(t, map[string]string{"email": "sent", "sms": "failed"}, b.deliveries(id))
	assert.Equal(t, models.CodeUpstream5xx, b.job(id).Code)

	s.status.Store(http.StatusCreated)
	b.due()
	b.work()
	assert.Equal(t, 2, result[NotificationResult](t, b.job(id)).Channels["sms"].Attempt)
	assert.Len(t, s.mail.messages(), 1)
}

// A server that takes a request and does not answer has perhaps sent.
func TestNotificationUnknownWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := receive(t, func(http.ResponseWriter, *http.Request) { <-hold })
	t.Cleanup(func() { close(hold) })
	b := setup(t)
	s := b.notifies(t, map[string]string{"DAYBOOK_TWILIO_URL": slow.URL, "DAYBOOK_SMS_TIMEOUT": "200ms"})
	id := b.enqueue(notification(t, receipt))
	b.work()
	j := b.job(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code)
	assert.Equal(t, map[string]string{"email": "sent", "sms": "unknown"}, b.deliveries(id))
	assert.Len(t, s.mail.messages(), 1)
}

// A mail server that takes the message and says nothing is unknown, too; one that is not reached
// has not sent.
func TestNotificationMailUnanswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.notifies(t, map[string]string{"DAYBOOK_SMTP_TIMEOUT": "300ms"})
	s.mail.block = make(chan struct{})
	id := b.enqueue(notification(t, receipt))
	b.work()
	assert.Equal(t, map[string]string{"email": "unknown", "sms": "sent"}, b.deliveries(id), b.job(id).Error)

	c := setup(t)
	c.notifies(t, map[string]string{"DAYBOOK_SMTP_PORT": "1"})
	id = c.enqueue(notification(t, receipt))
	c.work()
	assert.Equal(t, map[string]string{"email": "failed", "sms": "sent"}, c.deliveries(id))
	assert.Equal(t, models.JobPending, c.job(id).State)
}

func TestNotificationChannelsFail(t *testing.T) {
	t.Parallel()
	slack := func(status int, body string) func(t *testing.T) map[string]string {
		return func(t *testing.T) map[string]string {
			return map[string]string{"DAYBOOK_SLACK_URL": receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(status)
				_, _ = fmt.Fprint(w, body)
			}).URL}
		}
	}
	const toSlack = `{"eventType": "reminder", "slack": {"text": "Hi", "secret": "team", "channel": "C1"}}`
	for name, c := range map[string]struct {
		payload string
		vars    func(t *testing.T) map[string]string
		code    models.ErrorCode
		state   models.JobState
		text    string
	}{
		"slack: too many":     {toSlack, slack(429, ``), models.CodeRateLimited, models.JobPending, "answered 429"},
		"slack: out of order": {toSlack, slack(503, ``), models.CodeUpstream5xx, models.JobPending, "answered 503"},
		"slack: a gateway":    {toSlack, slack(504, ``), models.CodeUpstream5xx, models.JobFailed, "slack: unknown"},
		"slack: a bad token": {
			toSlack, slack(200, `{"ok": false, "error": "invalid_auth"}`),
			models.CodeAuthenticationFailed, models.JobFailed, "invalid_auth",
		},
		"slack: no channel": {
			toSlack, slack(200, `{"ok": false, "error": "channel_not_found"}`), models.CodeNotFound,
			models.JobFailed, "channel_not_found",
		},
		"slack: its error": {
			toSlack, slack(200, `{"ok": false, "error": "internal_error"}`), models.CodeUpstream5xx,
			models.JobPending, "internal_error",
		},
		"slack: another": {
			toSlack, slack(200, `{"ok": false, "error": "weird xoxb-t0psecret"}`), models.CodeHandlerError,
			models.JobFailed, "weird ***",
		},
		"slack: no server": {toSlack, func(*testing.T) map[string]string {
			return map[string]string{"DAYBOOK_SLACK_URL": "http://127.0.0.1:1"}
		}, models.CodeNetworkError, models.JobPending, "refused"},
		"slack: no secret": {
			`{"eventType": "reminder", "slack": {"text": "Hi", "channel": "C1"}}`, nil,
			models.CodeAuthenticationFailed, models.JobFailed, "DAYBOOK_SLACK_SECRET_DEFAULT",
		},
		"slack: another organization's": {
			`{"eventType": "reminder", "slack": {"text": "Hi", "secret": "others", "channel": "C1"}}`, nil,
			models.CodeAuthenticationFailed, models.JobFailed,
			"not bound to the organization " + org,
		},
		"discord: a token for an address": {
			`{"eventType": "reminder", "discord": {"content": "Hi", "secret": "token"}}`,
			func(*testing.T) map[string]string {
				return map[string]string{"DAYBOOK_DISCORD_SECRET_TOKEN": "abc", "DAYBOOK_SECRET_ORGS_TOKEN": "*"}
			}, models.CodeAuthenticationFailed, models.JobFailed, "not the address of a webhook",
		},
		"email: another sender": {
			`{"eventType": "reminder", "email": {"to": "a@example.com", "from": "boss@example.org"}}`,
			nil, models.CodePayloadInvalid, models.JobFailed, "DAYBOOK_SMTP_SENDERS",
		},
		"email: no template": {
			`{"eventType": "reminder", "email": {"to": "a@example.com", "template": "none"}}`, nil,
			models.CodePayloadInvalid, models.JobFailed, `no template "none"`,
		},
		"email: not configured": {
			receipt,
			func(*testing.T) map[string]string { return map[string]string{"DAYBOOK_SMTP_HOST": ""} }, models.CodeHandlerError,
			models.JobPending, "DAYBOOK_SMTP_HOST",
		},
		"email: organization": {
			receipt,
			func(*testing.T) map[string]string { return map[string]string{"DAYBOOK_SMTP_ORGS": "acme"} },
			models.CodeAuthenticationFailed, models.JobFailed, "DAYBOOK_SMTP_ORGS",
		},
		"sms: organization": {
			receipt,
			func(*testing.T) map[string]string { return map[string]string{"DAYBOOK_SMS_ORGS": "acme"} },
			models.CodeAuthenticationFailed, models.JobFailed, "DAYBOOK_SMS_ORGS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var vars map[string]string
			if c.vars != nil {
				vars = c.vars(t)
			}
			b.notifies(t, vars)
			j := b.run(notification(t, c.payload))
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Equal(t, c.state, j.State)
			assert.Contains(t, j.Error, c.text)
			assert.NotContains(t, b.everything(), "t0psecret")
			if c.code == models.CodeRateLimited {
				jittered(t, 90*time.Second, j.Wait)
			}
		})
	}
}

func TestNotificationCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, notification(t, receipt).Check())
	for raw, want := range map[string]string{
		`{"eventType": "other", "sms": {"to": "+4915112345678", "body": "x"}}`: "eventType must be submission_receipt",
		`{"eventType": "reminder"}`:                                                                                                                       "there is no channel",
		`{"eventType": "reminder", "email": {"to": []}}`:                                                                                                  "email: to is empty",
		`{"eventType": "reminder", "email": {"to": "a@example.com", "template": "../x"}}`:                                                                 "email: template",
		`{"eventType": "reminder", "sms": {"to": "0151", "body": "x"}}`:                                                                                   "sms: to is not a number",
		`{"eventType": "reminder", "slack": {"text": ""}}`:                                                                                                "slack: text",
		`{"eventType": "reminder", "slack": {"text": "x", "secret": "https://hooks.x/"}}`:                                                                 "slack: secret is the name of a secret",
		`{"eventType": "reminder", "discord": {"content": "x", "secret": "https://d.com"}}`:                                                               "discord: secret is the name of a secret",
		`{"eventType": "reminder", "push": {"title": "x"}}`:                                                                                               "push: give one of subscription",
		`{"eventType": "reminder", "push": {"title": "x", "token": "t", "ttl": -1}}`:                                                                      "push: ttl",
		`{"eventType": "reminder", "push": {"title": "x", "subscription": {"endpoint": "http://push.example.com/", "keys": {"p256dh": "", "auth": ""}}}}`: "push: subscription.endpoint",
	} {
		_, err := queue.EnqueueJob(t.Context(), nil, org, notification(t, raw), queue.JobOptions{})
		require.ErrorContains(t, notification(t, raw).Check(), want, raw)
		require.Error(t, err)
	}
}

// Settings of channels are no secrets: with them alone, a worker has no channel to send through, and
// the jobs wait.
func TestSettingsOfChannelsAreNoSecrets(t *testing.T) {
	t.Parallel()
	of := func(variables map[string]string) error {
		_, err := notificationOf(Config{Environment: variables}.environment())
		return err
	}
	for _, c := range []any{ChatConfig{}, PushConfig{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c)) {
			name := f.Tag.Get("env")
			if f.Type.Kind() != reflect.String || name == "-" {
				continue
			}
			err := of(map[string]string{"DAYBOOK_" + name: "https://chat.example.com"})
			assert.ErrorAs(t, err, new(notConfiguredError), name)
		}
	}
	for _, kind := range namedChannels {
		assert.NoError(t, of(map[string]string{"DAYBOOK_" + kind.variable + "TEAM": "s"}), kind.variable)
	}
}

package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestRetryAfterForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for said, want := range map[string]time.Duration{
		"":                                 0,
		"soon":                             0,
		"-5":                               0,
		"1e3":                              0,
		"+5":                               0,
		"Inf":                              0,
		"NaN":                              0,
		"0x10":                             0,
		".":                                0,
		"0":                                0,
		"0.2":                              time.Second,
		"1.5":                              2 * time.Second,
		" 30 ":                             30 * time.Second,
		"3600":                             time.Hour,
		"3601":                             time.Hour,
		"9223372036854775807":              time.Hour,
		"99999999999999999999999":          time.Hour,
		strings.Repeat("9", 400):           time.Hour,
		"Sat, 14 Mar 2026 12:05:00 GMT":    5 * time.Minute,
		"Saturday, 14-Mar-26 12:05:00 GMT": 5 * time.Minute,
		"Sat Mar 14 12:05:00 2026":         5 * time.Minute,
		"Sat, 14 Mar 2026 11:00:00 GMT":    0,
		"Sun, 14 Mar 2027 12:00:00 GMT":    time.Hour,
		"Sun, 14 Mar 9999 12:00:00 GMT":    time.Hour,
	} {
		assert.Equal(t, want, askedWait(http.Header{"Retry-After": {said}}, now, time.Hour), said)
	}
	// The server's clock is two hours ahead, or behind: its own Date says so.
	for _, date := range []string{"Sat, 14 Mar 2026 14:00:00 GMT", "Sat, 14 Mar 2026 10:00:00 GMT"} {
		at, err := http.ParseTime(date)
		assert.NoError(t, err)
		said := at.Add(90 * time.Second).UTC().Format(http.TimeFormat)
		assert.Equal(t, 90*time.Second, askedWait(http.Header{"Retry-After": {said}, "Date": {date}}, now, time.Hour), date)
	}
}

// busy answers 503, and asks for a wait of 17 minutes.
func busy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1020")
	w.WriteHeader(http.StatusServiceUnavailable)
}

// waitsAsAsked says that a job is tried again after the time that busy asks for.
func waitsAsAsked(t *testing.T, j ran, code models.ErrorCode) {
	t.Helper()
	assert.Equal(t, models.JobPending, j.State, j.Error)
	assert.Equal(t, code, j.Code, j.Error)
	assert.InDelta(t, 1020, j.Wait.Seconds(), 2)
}

// Each status after which a request is tried again has its Retry-After followed.
func TestWebhookHonoursRetryAfter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hooks(WebhookConfig{})
	for status, code := range map[int]models.ErrorCode{
		408: models.CodeTimeout, 413: models.CodeRateLimited, 425: models.CodeRateLimited, 429: models.CodeRateLimited,
		500: models.CodeUpstream5xx, 502: models.CodeUpstream5xx, 503: models.CodeUpstream5xx, 504: models.CodeUpstream5xx,
	} {
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1020")
			w.WriteHeader(status)
		})
		j := b.run(Webhook{URL: r.URL})
		waitsAsAsked(t, j, code)
		assert.Contains(t, j.Error, "again in 17m0s or later", status)
	}
}

// Every type that asks a server by HTTP follows it.
func TestEachSenderFollowsRetryAfter(t *testing.T) {
	t.Parallel()
	remind := func(payload string) Notification { return notification(t, `{"eventType": "reminder", `+payload+`}`) }
	for name, run := range map[string]func(t *testing.T, b *bundle) ran{
		"function": func(_ *testing.T, b *bundle) ran {
			b.function(FunctionConfig{}, busy)
			return b.run(image())
		},
		"sms": func(t *testing.T, b *bundle) ran {
			b.texts(receive(t, busy), nil)
			return b.run(SMS{To: "+4915112345678", Body: "Hello"})
		},
		"airtable": func(t *testing.T, b *bundle) ran {
			b.syncs(receive(t, busy).URL, nil)
			return b.run(submission())
		},
		"plaid": func(t *testing.T, b *bundle) ran {
			b.enriches(receive(t, busy).URL, nil)
			return b.run(PlaidEnrichment{Products: []string{"balance"}, AccessToken: "ada"})
		},
		"slack": func(t *testing.T, b *bundle) ran {
			b.notifies(t, map[string]string{"DAYBOOK_SLACK_URL": receive(t, busy).URL})
			return b.run(remind(`"slack": {"text": "Hi", "secret": "team", "channel": "C1"}`))
		},
		"slack, in an answer 200": func(t *testing.T, b *bundle) ran {
			b.notifies(t, map[string]string{"DAYBOOK_SLACK_URL": receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "1020")
				_, _ = fmt.Fprint(w, `{"ok": false, "error": "service_unavailable"}`)
			}).URL})
			return b.run(remind(`"slack": {"text": "Hi", "secret": "team", "channel": "C1"}`))
		},
		"discord": func(t *testing.T, b *bundle) ran {
			b.notifies(t, map[string]string{"DAYBOOK_DISCORD_SECRET_TEAM": receive(t, busy).URL + "/api/webhooks/1/t0psecret"})
			return b.run(remind(`"discord": {"content": "Hi", "secret": "team"}`))
		},
		"a browser": func(t *testing.T, b *bundle) ran {
			secret, _ := vapidKey(t)
			r := b.pushes(t, secret, loopback, busy)
			return b.run(toBrowser(newBrowser(t), r.URL+"/send"))
		},
		"a phone": func(t *testing.T, b *bundle) ran {
			tokens := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"access_token": "t0psecret", "token_type": "Bearer", "expires_in": 3600}`)
			})
			return b.toAPhone(t, tokens, receive(t, busy))
		},
		"a phone's token": func(t *testing.T, b *bundle) ran { return b.toAPhone(t, receive(t, busy), receive(t, nil)) },
		"one channel of two": func(t *testing.T, b *bundle) ran {
			s := b.notifies(t, map[string]string{"DAYBOOK_DISCORD_SECRET_TEAM": receive(t, busy).URL + "/api/webhooks/1/t0psecret"})
			s.status.Store(http.StatusInternalServerError)
			return b.run(remind(`"discord": {"content": "Hi", "secret": "team"}, "sms": {"to": "+4915112345678", "body": "Hi"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitsAsAsked(t, run(t, setup(t)), models.CodeUpstream5xx)
		})
	}
}

// toAPhone sends a message to a phone.
func (b *bundle) toAPhone(t *testing.T, tokens, phones *receiver) ran {
	t.Helper()
	b.variables(map[string]string{
		"DAYBOOK_FCM_URL": phones.URL, "DAYBOOK_FCM_SECRET_DEFAULT": account(t, tokens.URL),
		"DAYBOOK_SECRET_ORGS_DEFAULT": org,
	})
	return b.run(Notification{EventType: "reminder", Push: &NotificationPush{Title: "Soon", Token: "d0"}})
}

// What does not ask for a wait leaves the job to its policy; the last attempt is the last, whatever
// is asked for.
func TestRetryAfterThatAsksForNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.hooks(WebhookConfig{})
	for _, said := range []string{"0", "-30", "soon", "Sat, 14 Mar 2020 11:00:00 GMT"} {
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", said)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		jittered(t, time.Second, b.run(Webhook{URL: r.URL}).Wait)
	}
	r := receive(t, busy)
	id := b.enqueueFor(org, Webhook{URL: r.URL}, queue.JobOptions{MaxAttempts: 1})
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
}

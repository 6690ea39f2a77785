package handlers

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const twilioToken = "t0psecret-token"

// texts registers the type sms with a server that answers as Twilio does.
func (b *bundle) texts(r *receiver, more map[string]string) {
	b.t.Helper()
	vars := map[string]string{
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC123", "DAYBOOK_TWILIO_AUTH_TOKEN": twilioToken, "DAYBOOK_SMS_FROM": "+4930123456",
		"DAYBOOK_TWILIO_URL": r.URL,
	}
	maps.Copy(vars, more)
	b.variables(vars)
}

// twilio answers with a status and a body.
func twilio(t *testing.T, status int, body string) *receiver {
	t.Helper()
	return receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	})
}

func TestSMSIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vars map[string]string
		form url.Values
		user string
	}{
		"from a number": {
			nil,
			url.Values{"To": {"+4915112345678"}, "From": {"+4930123456"}, "Body": {"Größe 7\n& more"}},
			"AC123",
		},
		"from a messaging service, with a key": {
			map[string]string{"DAYBOOK_SMS_FROM": "MG123", "DAYBOOK_TWILIO_API_KEY_SID": "SK123"},
			url.Values{"To": {"+4915112345678"}, "MessagingServiceSid": {"MG123"}, "Body": {"Größe 7\n& more"}},
			"SK123",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := twilio(t, http.StatusCreated, `{"sid": "SM1", "status": "queued", "num_segments": "1"}`)
			b := setup(t)
			b.texts(r, c.vars)

			j := b.run(SMS{To: "+4915112345678", Body: "Größe 7\n& more"})

			assert.Equal(t, SMSResult{MessageSID: "SM1", Status: "queued"}, result[SMSResult](t, j))
			require.Len(t, r.requests(), 1)
			got := r.requests()[0]
			assert.Equal(t, "POST /2010-04-01/Accounts/AC123/Messages.json", got.method+" "+got.path)
			form, err := url.ParseQuery(string(got.body))
			require.NoError(t, err)
			assert.Equal(t, c.form, form)
			login := http.Request{Header: got.header}
			user, password, _ := login.BasicAuth()
			assert.Equal(t, c.user+" "+twilioToken, user+" "+password)
			assert.NotContains(t, b.everything(), twilioToken)
		})
	}
}

func TestSMSFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		code   models.ErrorCode
		state  models.JobState
		text   string
	}{
		"no such number": {
			400, `{"code": 21211, "message": "The 'To' number is not valid."}`, models.CodeNotFound,
			models.JobFailed, "The 'To' number is not valid. (21211)",
		},
		"another refusal": {
			400, `{"code": 21602, "message": "Message body is required for ` + twilioToken + `"}`,
			models.CodeHandlerError, models.JobFailed, "required for *** (21602)",
		},
		"login": {
			401, `{"code": 20003, "message": "Authenticate"}`, models.CodeAuthenticationFailed,
			models.JobFailed, "Authenticate",
		},
		"too many":         {429, ``, models.CodeRateLimited, models.JobPending, "answered 429 Too Many Requests"},
		"out of order":     {503, `<html>`, models.CodeUpstream5xx, models.JobPending, "answered 503 Service Unavailable"},
		"elsewhere":        {302, ``, models.CodeHandlerError, models.JobFailed, "answered 302 Found"},
		"no name":          {201, `{}`, models.CodeHandlerError, models.JobFailed, "did not say under which name"},
		"an empty message": {201, `{}`, models.CodePayloadInvalid, models.JobFailed, "body is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.texts(twilio(t, c.status, c.body), nil)
			p := SMS{To: "+4915112345678", Body: "Hello"}
			if name == "an empty message" {
				p.Body = " "
			}
			j := b.run(p)
			assert.Equal(t, c.code, j.Code)
			assert.Equal(t, c.state, j.State)
			assert.Contains(t, j.Error, c.text)
			assert.NotContains(t, b.everything(), twilioToken)
			if c.status == 429 {
				jittered(t, 2*time.Minute, j.Wait)
			}
		})
	}
}

// TestSMSIsBounded: a server that does not answer is a TIMEOUT; no server, no token and another
// organization are told as what they are.
func TestSMSIsBounded(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := receive(t, func(http.ResponseWriter, *http.Request) { <-hold })
	t.Cleanup(func() { close(hold) })
	for name, c := range map[string]struct {
		vars map[string]string
		code models.ErrorCode
		text string
	}{
		"no answer": {
			map[string]string{"DAYBOOK_SMS_TIMEOUT": "100ms"},
			models.CodeTimeout,
			"did not answer within 100ms",
		},
		"no server": {
			map[string]string{"DAYBOOK_TWILIO_URL": "http://127.0.0.1:1"},
			models.CodeNetworkError,
			"connection refused",
		},
		"no token": {
			map[string]string{"DAYBOOK_TWILIO_AUTH_TOKEN": ""},
			models.CodeAuthenticationFailed,
			"DAYBOOK_TWILIO_AUTH_TOKEN",
		},
		"another organization": {
			map[string]string{"DAYBOOK_SMS_ORGS": "acme"},
			models.CodeAuthenticationFailed,
			"DAYBOOK_SMS_ORGS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.texts(slow, c.vars)
			id := b.enqueueFor(org, SMS{To: "+4915112345678", Body: "Hello"}, queue.JobOptions{})
			b.work()
			j := b.job(id)
			assert.Equal(t, c.code, j.Code)
			assert.Contains(t, j.Error, c.text)
		})
	}
}

func TestSMSCheck(t *testing.T) {
	t.Parallel()
	require.NoError(t, SMS{To: "+4915112345678", Body: strings.Repeat("ü", 1600)}.Check())
	for _, p := range []SMS{
		{Body: "x"},
		{To: "0151", Body: "x"},
		{To: "+49 151", Body: "x"},
		{To: "+4915112345678"},
		{To: "+4915112345678", Body: strings.Repeat("x", 1601)},
	} {
		require.Error(t, p.Check(), p)
	}
}

package handlers

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// TestRegisterTasks: what is configured is worked, and the rest is named with its variables.
func TestRegisterTasks(t *testing.T) {
	t.Parallel()
	r := tasks.NewRegistry()
	builtin, err := RegisterTasks(r, Config{Environment: map[string]string{
		"DAYBOOK_SMTP_HOST": "mail.example.com", "DAYBOOK_SMTP_FROM": "Shop <shop@example.com>",
		"DAYBOOK_TASKS_FUNCTION_TIMEOUT": "5s",
		"DAYBOOK_FILES_BUCKETS":          "recordings=" + bucketURL(t.TempDir()), "DAYBOOK_JOBS_OWNER": "platform",
		"DAYBOOK_TASKS_PARALLEL_FUNCTIONS": "3", "DAYBOOK_TASKS_SHARED_TRANSACTION": "true",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, builtin.Close()) })
	assert.Equal(t, []string{"email", "file_delete"}, builtin.Types)
	assert.Contains(t, builtin.Missing["sms"], "DAYBOOK_TWILIO_ACCOUNT_SID")
	assert.Equal(t, []tasks.Registration{
		{Type: "db_function", Policy: tasks.Policy{
			Owner: "platform", Timeout: 30 * time.Second,
			FunctionTimeout: 5 * time.Second, Parallel: 3, SharedTransaction: true,
		}},
		{Type: "email", Policy: tasks.Policy{
			Owner: "platform", Timeout: time.Minute, FunctionTimeout: 5 * time.Second,
			Parallel: 30,
		}},
		{Type: "file_delete", Policy: tasks.Policy{
			Owner: "platform", Timeout: time.Minute,
			FunctionTimeout: 5 * time.Second, Parallel: 30,
		}},
	}, r.Registrations())
}

func TestRegisterTasksRefuses(t *testing.T) {
	t.Parallel()
	for want, vars := range map[string]map[string]string{
		"TASKS_FUNCTION_TIMEOUT": {"DAYBOOK_TASKS_FUNCTION_TIMEOUT": "3h"},
		"SMS_FROM":               {"DAYBOOK_TWILIO_ACCOUNT_SID": "AC1"},
		"TWILIO_ACCOUNT_SID":     {"DAYBOOK_TWILIO_ACCOUNT_SID": "../x", "DAYBOOK_SMS_FROM": "Shop"},
		"TWILIO_URL": {
			"DAYBOOK_TWILIO_ACCOUNT_SID": "AC1", "DAYBOOK_SMS_FROM": "Shop",
			"DAYBOOK_TWILIO_URL": "ftp://x",
		},
		"TWILIO_API_KEY_SID": {
			"DAYBOOK_TWILIO_ACCOUNT_SID": "AC1", "DAYBOOK_SMS_FROM": "Shop",
			"DAYBOOK_TWILIO_API_KEY_SID": "a b",
		},
		"FILES_BUCKETS: a": {"DAYBOOK_FILES_BUCKETS": "a=s3://b?secret=topsecret"},
		"FILES_SIGNER_URL": {"DAYBOOK_FILES_SIGNER_URL": "https://me:topsecret@example.com"},
		"FILES_TIMEOUT":    {"DAYBOOK_FILES_SIGNER_URL": "https://example.com", "DAYBOOK_FILES_TIMEOUT": "-1s"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, err := RegisterTasks(tasks.NewRegistry(), Config{Environment: vars})
			require.ErrorContains(t, err, want)
			assert.NotContains(t, err.Error(), "topsecret")
		})
	}
}

// TestTasksAreSentAsJobsAre: the payloads that tasks have besides, the same Message-ID each time,
// and the code with each error.
func TestTasksAreSentAsJobsAre(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	mails, err := NewEmail(EmailConfig{
		Host: m.host, Port: m.port, From: "Shop <shop@example.com>",
		Encryption: EmailPlain, Organizations: []string{"acme"},
	})
	require.NoError(t, err)
	letter := &tasks.Task[EmailTask]{
		ID: 7, IdempotencyKey: "task-7-1",
		Payload: EmailTask{Email: Email{Subject: "Hello", Text: "Hello Ada"}, ToAddress: "ada@example.com"},
	}
	require.NoError(t, letter.Payload.Check())
	first, err := mails.Process(t.Context(), letter)
	require.NoError(t, err)
	again, err := mails.Process(t.Context(), letter)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.Len(t, m.messages(), 2)
	assert.Equal(t, []string{"ada@example.com"}, m.messages()[0].to)
	assert.Contains(t, m.messages()[1].data, "<"+first.MessageID+">")

	r := twilio(t, http.StatusUnauthorized, "")
	sms, err := NewSMS(SMSConfig{
		AccountSID: "AC1", From: "Shop", URL: r.URL,
		Secrets: environmentSecrets(map[string]string{"DAYBOOK_TWILIO_AUTH_TOKEN": "x"}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sms.Close()) })
	_, err = sms.Process(t.Context(),
		&tasks.Task[SMSTask]{Payload: SMSTask{SMS: SMS{Body: "Hello"}, ToNumber: "+4915112345678"}})
	var coded interface{ ErrorCode() models.ErrorCode }
	require.ErrorAs(t, err, &coded)
	assert.Equal(t, models.CodeAuthenticationFailed, coded.ErrorCode())
	require.Error(t, EmailTask{}.Check())
	require.Error(t, SMSTask{}.Check())
}

package languages_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// pythonFunction starts the function in Python, and returns its address.
func pythonFunction(t *testing.T, secret string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), python(t, "http.server"), "python/function.py")
	command.Env = append(os.Environ(), "FUNCTION_SECRET="+secret)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// A function in Python works jobs: at once, by a callback, and not when its payload is wrong or the
// signature is another's.
func TestPythonFunction(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("the secret of the function of this test"))
	calledBack := make(chan struct{}, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, err := queue.CompleteCallback(r.Context(), db.Pool, strings.TrimPrefix(r.URL.Path, "/api/callbacks/"),
			json.RawMessage(body))
		assert.NoError(t, err)
		calledBack <- struct{}{}
	}))
	t.Cleanup(api.Close)
	address := pythonFunction(t, secret)
	registry := jobs.NewRegistry()
	for jobType, signing := range map[string]string{"count_words": secret, "count_forged": "whsec_" +
		base64.StdEncoding.EncodeToString([]byte("another secret, which the function has not"))} {
		h, err := handlers.NewFunction(handlers.FunctionConfig{
			URL: address + "/count_words", Secret: "functions", Callback: time.Hour, CallbackURL: api.URL,
			AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
			Secrets: handlers.Secrets{Lookup: func(name string) (string, bool) {
				return signing,
					name == "DAYBOOK_WEBHOOK_SECRET_FUNCTIONS"
			}},
		})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, h.Close()) })
		jobs.RegisterRaw(registry, jobType, handlers.FunctionPolicy(0), h.Handle)
	}
	work := func(jobType, payload string) string {
		job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme",
			queue.RawPayload{Type: jobType, Data: json.RawMessage(payload)}, queue.JobOptions{})
		require.NoError(t, err)
		queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{})
		return job.ID
	}
	status := func(id string) string {
		s, err := queue.ReadJobStatus(t.Context(), db.Pool, id)
		require.NoError(t, err)
		return string(s.State) + " " + string(s.ErrorCode) + string(s.Result)
	}
	assert.Equal(t, `completed {"words": 3}`, status(work("count_words", `{"text": "one two three"}`)))
	assert.Equal(t, "failed NO_TEXT", status(work("count_words", `{"words": 3}`)))
	assert.Equal(t, "failed AUTHENTICATION_FAILED", status(work("count_forged", `{"text": "one"}`)))

	later := work("count_words", `{"text": "`+strings.Repeat("word ", 500)+`"}`)
	select {
	case <-calledBack:
	case <-time.After(time.Minute):
		t.Fatal("the function has not called back")
	}
	queuetest.DrainJobs(t, db.Pool, registry, queuetest.JobsOptions{Advance: time.Second})
	assert.Equal(t, `completed {"words": 500}`, status(later))
}

package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// counted counts what is read of it.
type counted struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// TestNoRequestsBodyIsReadWhole: parameters are read from a multipart body as well, of any method
// and before there is a session, and what is large of one is kept in files.
func TestNoRequestsBodyIsReadWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const most = 2 << 20
	for _, c := range []struct{ method, path string }{
		{http.MethodGet, "/console/sign-in"},
		{http.MethodPost, "/console/sign-in"},
		{http.MethodGet, "/console/jobs"},
		{http.MethodPost, "/console/rules/preview"},
	} {
		body := &counted{Reader: io.MultiReader(
			strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"),
			strings.NewReader(strings.Repeat("x", 40<<20)), strings.NewReader("\r\n--b--\r\n"))}
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, body)
		r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		s.server.Config.Handler.ServeHTTP(httptest.NewRecorder(), r)
		assert.LessOrEqual(t, body.n, int64(most), "%s %s", c.method, c.path)
	}
}

// TestAFormThatCannotBeReadChangesNothing: its fields would be empty, which removes a cap.
func TestAFormThatCannotBeReadChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	s.exec(`UPDATE daybook.organizations SET max_in_flight = 7`)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	status, body := s.post("/console/organizations/acme/cap",
		url.Values{"most": {"8"}, "more": {strings.Repeat("x", 2<<20)}})
	assert.Equal(t, http.StatusRequestEntityTooLarge, status, body)
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.organizations WHERE max_in_flight = 7`))
	list, err := actions.List(t.Context(), s.Pool, actions.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, actions.Refused, list[0].Outcome)
}

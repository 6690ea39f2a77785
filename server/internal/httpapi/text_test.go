package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTextsThatNoRowCanHave: a parameter or field that PostgreSQL cannot hold is refused, and the
// answer says why.
func TestTextsThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, r := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/jobs?orgId=acme&type=%ff", ""},
		{http.MethodGet, "/api/jobs/a%00b", ""},
		{http.MethodPost, "/api/jobs/enqueue", `{"orgId": "a\u0000b", "type": "webhook", "payload": {}}`},
	} {
		var body any
		if r.body != "" {
			body = r.body
		}
		a := b.send(b.everything, r.method, r.path, body)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status, r.path)
		assert.Equal(t, "INVALID", a.code(), r.path)
		assert.Contains(t, string(a.body), "a text must be UTF-8 and must not have the character NUL", r.path)
	}
}

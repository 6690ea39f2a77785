package console

import (
	"net/http"
	"net/url"
)

// sameOrigin refuses a POST that no page of this server sent. Go's own protection reads
// Sec-Fetch-Site and Origin, and lets pass what has neither, for programs. The console is for
// browsers alone (programs have the API): of those that send neither header, the page must be named
// by Referer. The session's cookie, which other sites' forms do not carry, is the second line.
func (c *console) sameOrigin(next http.Handler) http.Handler {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, &request{Request: r}, errOtherSite)
	})
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(refuse)
	checked := protection.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !safeMethod(r.Method) && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
			from, err := url.Parse(r.Referer())
			if err != nil || from.Host == "" || from.Host != r.Host {
				refuse.ServeHTTP(w, r)
				return
			}
		}
		checked.ServeHTTP(w, r)
	})
}

func safeMethod(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

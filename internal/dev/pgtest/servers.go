package pgtest

import (
	"net"
	"net/url"
	"strings"
	"testing"
)

// Servers is an address of several servers, in their order, of which the one that takes writes is
// wanted. All else is that of the first address.
func Servers(tb testing.TB, addresses ...string) string {
	tb.Helper()
	var hosts []string
	for _, address := range addresses {
		hosts = append(hosts, parsed(tb, address).Host)
	}
	u := parsed(tb, addresses[0])
	u.Host = strings.Join(hosts, ",")
	query := u.Query()
	query.Set("target_session_attrs", "read-write")
	u.RawQuery = query.Encode()
	return u.String()
}

// Silent is a database's address at a server that takes connections and never answers, as one does
// that was stopped. It ends with the test.
func Silent(tb testing.TB, address string) string {
	tb.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { _ = listener.Close() })
	u := parsed(tb, address)
	u.Host = listener.Addr().String()
	return u.String()
}

func parsed(tb testing.TB, address string) *url.URL {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return u
}

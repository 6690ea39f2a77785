// Package clientaddress says which client a request came from, to count its requests.
package clientaddress

import (
	"net"
	"net/http"
	"net/netip"
)

// Of is the address that a request came from: of IPv6 the network, which one client has whole. What
// a proxy says of its clients is not believed: behind one, all clients share one count.
func Of(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil || address.Unmap().Is4() {
		return host
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return network.String()
}

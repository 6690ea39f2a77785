package handlers

import (
	"errors"
	"net/netip"
	"slices"
	"syscall"
)

// errAddress: a name leads to an address that must not be asked.
var errAddress = errors.New("the host's address is private, loopback, link-local or reserved")

// guard decides which addresses may be connected to. It is asked for each connection with the
// address itself, after the name was looked up: neither a redirect nor a name server that changes
// its answer can avoid it.
type guard struct {
	// allowed are networks that may be connected to although their addresses are not public.
	allowed []netip.Prefix
}

// control implements net.Dialer's Control.
func (g guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !g.allows(to.Addr()) {
		return errAddress
	}
	return nil
}

// allows reports whether an address may be connected to.
func (g guard) allows(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if within(g.allowed, a) {
		return true
	}
	if inner, ok := embedded(a); ok {
		return g.allows(inner)
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() && !within(reserved, a) && (a.Is4() || publicV6.Contains(a))
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}

var (
	// publicV6 is all of IPv6 that is given to networks of the Internet.
	publicV6 = netip.MustParsePrefix("2000::/3")
	// nat64 and sixToFour hold an address of IPv4, behind 12 and 2 bytes.
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// embedded is the address of IPv4 to which an address of IPv6 is translated on its way.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case a.Is4():
		return a, false
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	default:
		return a, false
	}
}

// reserved are the networks of IANA's special-purpose registries that netip's methods do not cover,
// and an address that leads to the platform on which a worker runs.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // shared, behind a carrier's NAT
	// Azure's own services, such as the agent of a machine, under the same public address for everyone:
	// https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation
}

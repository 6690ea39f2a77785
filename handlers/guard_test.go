package handlers

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.254", "127.0.0.1", "127.8.8.8", "169.254.169.254",
		"168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "172.16.0.1", "172.31.255.255",
		"192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::8.8.8.8",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::8.8.8.8",
		"2002:7f00:1::1", "2002:a00:1::1", "2002:a9fe:a9fe::", "2001::1", "2001:db8::1", "3fff::1", "100::1",
		"fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1",
	} {
		assert.False(t, guard{}.allows(netip.MustParseAddr(refused)), refused)
	}
	for _, allowed := range []string{
		"1.1.1.1", "8.8.8.8", "168.63.129.15", "168.63.129.17", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.0.1.1", "223.255.255.255",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
	} {
		assert.True(t, guard{}.allows(netip.MustParseAddr(allowed)), allowed)
	}
}

func TestGuardAllowsWhatIsConfigured(t *testing.T) {
	t.Parallel()
	g := guard{[]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for _, allowed := range []string{
		"10.1.2.3:80", "[::ffff:10.1.2.3]:80", "[64:ff9b::10.1.2.3]:80", "[fd00::1]:443",
		"8.8.8.8:80",
	} {
		require.NoError(t, g.control("tcp", allowed, nil), allowed)
	}
	for _, refused := range []string{"10.2.0.1:80", "127.0.0.1:80", "[fe80::1]:80", "nonsense", ""} {
		require.ErrorIs(t, g.control("tcp", refused, nil), errAddress, refused)
	}
}

package httpapi

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each address has limits of its own, a network of IPv6 is one address, and a bounded number of
// them is remembered.
func TestCallbacksAreCountedByAddress(t *testing.T) {
	t.Parallel()
	var l limits
	from := func(address string) *addressLimits { return l.address(&http.Request{RemoteAddr: address}) }
	one := from("192.0.2.1:1000")
	var err error
	for range callbacksPerMinute {
		if err = one.callback(); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "more callbacks than this address may have, 6000 a minute")
	assert.Same(t, one, from("192.0.2.1:2000"))
	assert.NoError(t, from("192.0.2.2:1000").callback())
	assert.Same(t, from("[2001:db8::1]:1"), from("[2001:db8::2]:1"))
	for i := range mostAddresses {
		from(fmt.Sprintf("10.0.%d.%d:1", i/256, i%256))
	}
	assert.LessOrEqual(t, len(l.addresses), mostAddresses)
}

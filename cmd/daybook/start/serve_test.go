package start

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What this machine alone reaches needs no leave.
func TestServeListensOnThisMachine(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0", "localhost:0"} {
		assert.NoError(t, checkListen(t.Context(), listen, false), listen)
	}
	assert.NoError(t, checkListen(t.Context(), net.JoinHostPort("", "8080"), true))
}

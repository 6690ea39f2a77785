package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	for written, want := range map[string][]string{
		"teshop": {"testshop", "shop"}, "Shop": {"shop"}, "shpo": {"shop"}, "shops": {"shop"}, "acne": {"acme"},
		"org_12": {"org_123"}, "te": {"testshop"}, "shup": {"shop", "chup"}, "beta": {}, "": nil, "x": {},
	} {
		assert.Equal(t, want, nearest(written, []string{"acme", "chup", "shop", "testshop", "org_123"}), written)
	}
}

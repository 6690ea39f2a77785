package httpapi

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What huma refuses is answered with the status that huma chose.
func TestStatusTable(t *testing.T) {
	t.Parallel()
	for status, class := range statusTable {
		assert.Equal(t, status, class.Status, class.Code)
	}
}

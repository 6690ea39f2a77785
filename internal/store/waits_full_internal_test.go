package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestEverythingIsReadAgain: a read of a part does not put off that of everything, also where nothing
// was ever decided.
func TestEverythingIsReadAgain(t *testing.T) {
	t.Parallel()
	var d decidedWaits
	began := time.Now()
	look := func(at time.Time) (everything bool) {
		_, limits := d.begin(at)
		d.looked(at, 0, 0, nil)
		return limits != nil
	}
	assert.True(t, look(began))
	full := d.full
	assert.False(t, look(began.Add(fullEvery/2)))
	assert.Equal(t, full, d.full)
	assert.True(t, look(full))
}

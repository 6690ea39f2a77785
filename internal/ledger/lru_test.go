package ledger

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLRUDropsWhatWasNotUsedForLongest(t *testing.T) {
	t.Parallel()
	l := newLRU[string, int](10)
	l.put("a", 1, 4)
	l.put("b", 2, 4)
	_, ok := l.get("a")
	assert.True(t, ok)
	l.put("c", 3, 4)
	_, ok = l.get("b")
	assert.False(t, ok, "a was used after b")
	v, ok := l.get("a")
	assert.True(t, ok)
	assert.Equal(t, 1, v)
	assert.Equal(t, 8, l.weight)
}

func TestLRUReplacesAndKeepsTheNewest(t *testing.T) {
	t.Parallel()
	l := newLRU[string, int](10)
	l.put("a", 1, 4)
	l.put("a", 2, 6)
	assert.Equal(t, 6, l.weight)
	l.put("large", 3, 99)
	assert.Equal(t, 99, l.weight)
	v, ok := l.get("large")
	assert.True(t, ok, "what weighs more than the limit stays until the next")
	assert.Equal(t, 3, v)
	l.put("b", 4, 1)
	assert.Equal(t, 1, l.order.Len())
	assert.Len(t, l.at, 1)
}

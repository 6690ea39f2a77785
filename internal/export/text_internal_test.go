package export

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGuarded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠A"} {
		assert.Equal(t, "'"+text, guarded(text))
	}
	for _, text := range []string{"", "a=1", " =1", "'=1", "1-2", "Müller", "\xff"} {
		assert.Equal(t, text, guarded(text))
	}
}

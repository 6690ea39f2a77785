package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableIsAlignedAndHarmless(t *testing.T) {
	t.Parallel()
	table := NewTable("NAME", "N", "TEXT")
	table.Right = []int{1}
	table.Add("größer", "1", "two\nlines \x1b[31mred")
	table.Add("a", "23", "")
	var out bytes.Buffer
	require.NoError(t, (&App{}).Print(&out, table))
	assert.Equal(t, "NAME     N  TEXT\ngrößer   1  two lines [31mred\na       23\n", out.String())
	assert.Equal(t, "abc…", cut("abcdef", 4))
}

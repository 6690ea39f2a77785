package bom_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/text/bom"
)

func TestMarksAreLeftOutAndUTF16IsToldApart(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a", "{}": "{}", "\xef\xbb\xbf": "", "\xef\xbb\xbf{}": "{}", "\xef\xbb": "\xef\xbb",
		"\xef\xbb\xbf\xef\xbb\xbf{}": "\xef\xbb\xbf{}", // the second one is a character
	} {
		trimmed, err := bom.Trim([]byte(text))
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, string(trimmed), "%q", text)
		r, err := bom.Reader(iotest.OneByteReader(strings.NewReader(text)))
		require.NoError(t, err, "%q", text)
		read, err := io.ReadAll(r)
		require.NoError(t, err, "%q", text)
		assert.Equal(t, want, string(read), "%q", text)
	}
	for _, text := range []string{"\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00}\x00", "\x00{\x00}", "\xff\xfe"} {
		_, err := bom.Trim([]byte(text))
		assert.ErrorIs(t, err, bom.ErrUTF16, "%q", text)
		_, err = bom.Reader(strings.NewReader(text))
		assert.ErrorIs(t, err, bom.ErrUTF16, "%q", text)
	}
}

package console

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASourceIsReadWhenThereIsAPlace: reading a large source takes seconds, and every token with
// the scope read may send one.
func TestASourceIsReadWhenThereIsAPlace(t *testing.T) {
	t.Parallel()
	c := &console{previews: make(chan struct{}, 1)}
	c.previews <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.preview(ctx, nil, previewView{Source: "rules: 1"}, "Preview")
	require.ErrorIs(t, err, errPreviewsBusy)
}

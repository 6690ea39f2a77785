package span_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

const (
	asked     = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	running   = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"
	inherited = "00-cccccccccccccccccccccccccccccccc-dddddddddddddddd-01"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		asked: true, running: true,
		"":               false,
		asked + "-x":     false,
		"01" + asked[2:]: false,
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x": false,
		"00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01": false,
	} {
		assert.Equal(t, want, span.Valid(text), text)
		assert.Equal(t, want, span.TraceID(text) != "", text)
	}
	assert.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", span.TraceID(asked))
}

// TestParent is alone in setting the process's source.
func TestParent(t *testing.T) { //nolint:paralleltest // it sets what the whole process has
	ctx := t.Context()
	assert.Empty(t, span.Parent(ctx))
	assert.Empty(t, span.Parent(span.WithParent(ctx, "nonsense")))
	assert.Equal(t, inherited, span.Parent(span.Inherit(ctx, inherited)))

	span.SetSource(func(context.Context) string { return running })
	defer span.SetSource(nil)
	assert.Equal(t, running, span.Parent(span.Inherit(ctx, inherited)))
	assert.Equal(t, asked, span.Parent(span.Inherit(span.WithParent(ctx, asked), inherited)))
}

func TestStartDoesNothingByItself(t *testing.T) {
	t.Parallel()
	ctx, s := span.Start(t.Context(), span.Span{Name: "send webhook"})
	s.Rename("send")
	s.Set(span.Attr{Key: "a", Value: 1})
	s.End(nil)
	assert.Equal(t, t.Context(), ctx)
}

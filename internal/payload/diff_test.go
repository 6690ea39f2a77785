package payload_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/payload"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	before := `{"a": 1, "b": {"c/d": "<x>", "same": [1]}, "list": [1, 2, 3], "gone": null}`
	after := `{"a": 1, "b": {"c/d": "y", "same": [1]}, "list": [1, 5], "new": {}}`
	assert.Equal(t, []payload.Difference{
		{"/b/c~1d", `"<x>"`, `"y"`}, {"/gone", "null", ""}, {"/list/1", "2", "5"}, {"/list/2", "3", ""}, {"/new", "", "{}"},
	}, payload.Diff(json.RawMessage(before), json.RawMessage(after)))
	assert.Empty(t, payload.Diff(json.RawMessage(before), json.RawMessage(before)))
	assert.Equal(t, []payload.Difference{{"/n", "12345678901234567890", "12345678901234567891"}},
		payload.Diff(json.RawMessage(`{"n": 12345678901234567890}`), json.RawMessage(`{"n": 12345678901234567891}`)))
}

package cli_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/queue"
)

// TestErrorsOfPayloadsRepeatNoValue: whatever a member of a built-in type's payload holds that it may
// not, the error does not have it.
func TestErrorsOfPayloadsRepeatNoValue(t *testing.T) {
	t.Parallel()
	const mark = "GEHEIM"
	marks := []string{
		`"` + mark + `"`, `["` + mark + `"]`, `{"a":"` + mark + `"}`, `{"a":{"b":["` + mark + `"]}}`, `31415e9999`, `-31415`, `"access-` + mark + `"`,
		`"http://` + mark + `:x@a b"`, `"` + mark + ` <x@y"`,
	}
	for base, p := range map[string]queue.Payload{
		`{"url": "https://example.com"}`:                         handlers.Webhook{},
		`{"to": ["a@example.com"], "subject": "s", "text": "t"}`: handlers.Email{},
		`{"kind": "trial_balance"}`:                              handlers.Report{},
		`{}`:                                                     handlers.Cleanup{},
		`{"function": "app.do"}`:                                 handlers.DBFunction{},
		`{"to": "+4915112345678", "body": "b"}`:                  handlers.SMS{},
		`{"bucket": "b", "object_key": "k"}`:                     handlers.FileDelete{},
		`{"airtableSettings": {"base_id": "app0123456789abcd", "table_name": "t"}, "submissionId": "s", "data": {}}`:                                                                               handlers.AirtableSync{},
		`{"eventType": "reminder", "email": {"to": ["a@example.com"], "template": "reminder"}, "sms": {"to": "+4915112345678", "body": "b"}, "slack": {"text": "t"}, "discord": {"content": "c"}}`: handlers.Notification{},
		`{"accessToken": "a", "products": ["transactions"], "startDate": "2026-01-01", "endDate": "2026-01-31"}`:                                                                                   handlers.PlaidEnrichment{},
	} {
		schema, err := payload.SchemaFor(reflect.TypeOf(p))
		require.NoError(t, err)
		require.NoError(t, cli.CheckBuiltinPayload(p.JobType(), json.RawMessage(base)), base)
		var whole map[string]any
		require.NoError(t, json.Unmarshal([]byte(base), &whole))
		var of map[string]any
		require.NoError(t, json.Unmarshal(schema.JSON(), &of))
		refused := 0
		eachMember(of, whole, func(with func(value json.RawMessage) any) {
			for _, value := range marks {
				raw, err := json.Marshal(with(json.RawMessage(value)))
				require.NoError(t, err)
				if err := cli.CheckBuiltinPayload(p.JobType(), raw); err != nil {
					refused++
					assert.NotContains(t, err.Error(), mark, "%s %s", p.JobType(), raw)
					assert.NotContains(t, err.Error(), "31415", "%s %s", p.JobType(), raw)
				}
			}
		})
		assert.Positive(t, refused, p.JobType())
	}
}

// eachMember calls try for each member that a schema has, at each depth, with what makes the whole with
// another value of it.
func eachMember(schema, whole map[string]any, try func(with func(value json.RawMessage) any)) {
	properties, _ := schema["properties"].(map[string]any)
	for name, of := range properties {
		with := func(value any) any {
			out := maps.Clone(whole)
			if out == nil {
				out = map[string]any{}
			}
			out[name] = value
			return out
		}
		try(func(value json.RawMessage) any { return with(value) })
		inner, _ := of.(map[string]any)
		deeper, _ := whole[name].(map[string]any)
		eachMember(inner, deeper, func(inside func(value json.RawMessage) any) {
			try(func(value json.RawMessage) any { return with(inside(value)) })
		})
	}
}

package camel

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

type inner struct {
	WorkerName string `json:"worker_name"`
	Hidden     string `json:"-"`
}

type stored struct {
	LineNo int `json:"line_no"`
}

type sample struct {
	inner
	OrgID     string            `json:"org_id"`
	StartedAt time.Time         `json:"started_at,omitzero"`
	Ended     *time.Time        `json:"ended_at,omitempty"`
	Payload   json.RawMessage   `json:"raw_payload"`
	ByCode    map[string]inner  `json:"by_code"`
	Words     models.Words      `json:"hook_names"`
	Day       models.Date       `json:"posting_date"`
	Data      stored            `json:"as_stored"`
	Empty     []string          `json:"no_words,omitempty"`
	None      []string          `json:"null_words"`
	Any       any               `json:"any_value"`
	Labels    map[string]string `json:"labels,omitempty"`
	Plain     string
}

func example() sample {
	day, err := models.ParseDate("2026-03-14")
	if err != nil {
		panic(err)
	}
	return sample{
		inner: inner{WorkerName: "w<1>"}, OrgID: "acme", StartedAt: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC),
		Payload: json.RawMessage(`{"user_id":1}`), ByCode: map[string]inner{"rate_limited": {WorkerName: "x"}},
		Words: models.Words{"a"}, Day: day, Data: stored{3}, Any: inner{WorkerName: "y"}, Plain: "p",
	}
}

func TestNamesAreInCamelCase(t *testing.T) {
	t.Parallel()
	out, err := Marshal(example(), reflect.TypeFor[stored]())
	require.NoError(t, err)
	assert.Equal(t, //nolint:testifylint // the order counts as well
		`{"workerName":"w<1>","orgId":"acme","startedAt":"2026-03-14T12:00:00Z","rawPayload":{"user_id":1},"byCode":{"rate_limited":{"workerName":"x"}},`+
			`"hookNames":["a"],"postingDate":"2026-03-14","asStored":{"line_no":3},"nullWords":null,"anyValue":{"workerName":"y"},"Plain":"p"}`, string(out))
}

// TestOnlyNamesDiffer compares with encoding/json, for a value whose names have no underscore and
// for those of the zero value.
func TestOnlyNamesDiffer(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		nil, 1, "a<b", []int(nil), []byte("x"),
		map[string]int{"b_c": 1, "a": 2},
		struct{ A, B any }{1, []string{"x"}},
		&struct {
			A *int `json:"a,omitempty"`
		}{},
	} {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		got, err := Marshal(v)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
	}
	zero, err := json.Marshal(sample{Payload: json.RawMessage("null")})
	require.NoError(t, err)
	got, err := Marshal(sample{Payload: json.RawMessage("null")})
	require.NoError(t, err)
	var a, b map[string]any
	require.NoError(t, json.Unmarshal(zero, &a))
	require.NoError(t, json.Unmarshal(got, &b))
	assert.Len(t, b, len(a))
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	want := example()
	want.Any = nil
	out, err := Marshal(want, reflect.TypeFor[stored]())
	require.NoError(t, err)
	var got sample
	require.NoError(t, Unmarshal(out, &got, reflect.TypeFor[stored]()))
	assert.Equal(t, want, got)
}

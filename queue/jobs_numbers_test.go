package queue_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/queue"
)

// TestPayloadsAreComparedByValue uses a key and a unique job again with payloads that say the same
// in other words, and with others.
func TestPayloadsAreComparedByValue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		first string
		same  []string
		other []string
	}{
		"whole numbers": {
			`{"n": 1}`,
			[]string{`{"n":1.0}`, `{"n":1e0}`, `{"n": 10e-1}`, `{"n":1.000}`},
			[]string{`{"n":10}`, `{"n":"1.0"}`, `{"n":1.01}`, `{"n":-1}`},
		},
		"fractions": {
			`{"n": [1.5, {"m": 100}]}`,
			[]string{`{"n":[1.50,{"m":1e2}]}`, `{"n":[15e-1,{"m":100.00}]}`},
			[]string{`{"n":[1.05,{"m":100}]}`},
		},
		"zero": {`{"n": 0}`, []string{`{"n":-0}`, `{"n":0.00}`, `{"n":-0.0}`, `{"n":0e9}`}, []string{`{"n":null}`}},
		"large numbers": {
			`{"n": 12345678901234567890.10}`,
			[]string{`{"n":12345678901234567890.1}`},
			[]string{`{"n":12345678901234567891.1}`, `{"n":12345678901234567890}`, `{"n": 12345678901234567000}`},
		},
		"texts": {
			`{"a": "1.0", "b": "say \"x\": 1.50}"}`,
			[]string{`{"b":"say \"x\": 1.50}","a":"1.0"}`, `{"b":"say \u0022x\u0022: 1.50}", "a":"1.0"}`},
			[]string{`{"a": "1", "b": "say \"x\": 1.50}"}`, `{"a": "1.0", "b": "say \"x\": 1.5}"}`},
		},
		"texts and numbers": {
			`{"a": "\\", "b": 2.0, "c": "1.0]"}`,
			[]string{`{"a": "\\", "b": 2, "c": "1.0]"}`},
			[]string{`{"a": "\\", "b": 2, "c": "1]"}`},
		},
	} {
		raw := func(data string) queue.RawPayload {
			return queue.RawPayload{Type: "number", Data: json.RawMessage(data)}
		}
		first := b.newJob(raw(c.first), queue.JobOptions{IdempotencyKey: name, Unique: true})
		for _, same := range c.same {
			for how, o := range map[string]queue.JobOptions{"key": {IdempotencyKey: name}, "unique": {Unique: true}} {
				for way, enqueue := range map[string]func() (queue.EnqueuedJob, error){
					"one": func() (queue.EnqueuedJob, error) { return queue.EnqueueJob(t.Context(), b.Pool, org, raw(same), o) },
					"many": func() (queue.EnqueuedJob, error) {
						all, err := queue.EnqueueJobs(t.Context(), b.Pool,
							[]queue.NewJob{{OrgID: org, Payload: raw(same), Options: o}})
						if err != nil {
							return queue.EnqueuedJob{}, err
						}
						return all[0], nil
					},
				} {
					r, err := enqueue()
					assert.NoError(t, err, "%s, %s, %s: %s", name, how, way, same)
					assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: queue.Unchanged}, r,
						"%s, %s, %s: %s", name, how, way, same)
				}
			}
		}
		for _, other := range c.other {
			_, err := queue.EnqueueJob(t.Context(), b.Pool, org, raw(other), queue.JobOptions{IdempotencyKey: name})
			assert.ErrorIs(t, err, queue.ErrKeyReused, "%s: %s", name, other)
		}
	}
}

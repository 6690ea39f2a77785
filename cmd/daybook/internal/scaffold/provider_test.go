package scaffold_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/scaffold"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/tasks"
)

// What the scaffolded before_handler makes is what the type's processor takes.
func TestProvidersPayload(t *testing.T) {
	t.Parallel()
	for channel, payload := range map[string]tasks.Checked{
		"email": &handlers.EmailTask{}, "sms": &handlers.SMSTask{},
		"file_delete": &handlers.FileDelete{},
	} {
		t.Run(channel, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			files, err := scaffold.Files(scaffold.Options{Name: "notify", Channel: channel})
			require.NoError(t, err)
			for _, stmt := range []string{
				string(files[0].Text), `SELECT app.kickoff_notify(17)`,
				`SELECT internal.run_function('app.notify_supervisor', '{"notify_task_id": 1}')`,
			} {
				_, err := db.Pool.Exec(t.Context(), stmt)
				require.NoError(t, err)
			}
			var answer struct {
				Status  string
				Payload json.RawMessage
			}
			require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT internal.run_function(payload ->> 'before_handler', payload) FROM queues.open_tasks WHERE task_type = $1`,
				channel).Scan(&answer))
			assert.Equal(t, "succeeded", answer.Status)
			require.NoError(t, json.Unmarshal(answer.Payload, payload))
			assert.NoError(t, payload.Check())
			assert.Contains(t, string(answer.Payload), "17", "what the process is about")
		})
	}
}

package temporaltest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

func echo(_ workflow.Context, word string) (string, error) { return word, nil }

func TestWorkflowRuns(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	for name, namespace := range map[string]string{"default namespace": "", "namespace of its own": server.Namespace(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := server.Client(t, namespace)
			queue := temporaltest.Unique("queue")
			w := worker.New(c, queue, worker.Options{})
			w.RegisterWorkflow(echo)
			require.NoError(t, w.Start())
			defer w.Stop()
			run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, echo, "word")
			require.NoError(t, err)
			var got string
			require.NoError(t, run.Get(t.Context(), &got))
			require.Equal(t, "word", got)
		})
	}
}

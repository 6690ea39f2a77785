package queuetest_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

type greet struct {
	Name string `json:"name"`
}

func (greet) JobType() string { return "greet" }

type part struct {
	Name string `json:"name"`
}

func (part) JobType() string { return "part" }

// bundle is a database of the test's own.
type bundle struct {
	*pgtest.DB
	t *testing.T
}

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{pgtest.New(t), t}
}

func (b *bundle) enqueue(q queue.Querier, p queue.Payload, o queue.JobOptions) string {
	b.t.Helper()
	e, err := queue.EnqueueJob(b.t.Context(), q, org, p, o)
	require.NoError(b.t, err)
	return e.ID
}

// failing stands for a test that fails.
type failing struct {
	testing.TB
	message string
}

// Fatalf ends the goroutine, as a test's does.
func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure returns what f fails a test with; "" when it does not.
func failure(t *testing.T, f func(tb *failing)) string {
	t.Helper()
	tb := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	return tb.message
}

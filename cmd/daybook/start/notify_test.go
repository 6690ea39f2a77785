package start

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// A worker is ready when the workers of all queues poll, and hung when those of one no longer do.
func TestPollsAreAlive(t *testing.T) {
	t.Parallel()
	p := newPolls(2)
	poll := func(request any) {
		during := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			return net.ErrClosed
		}
		require.ErrorIs(t, p.note(t.Context(), "", request, nil, nil, during), net.ErrClosed)
	}
	assert.False(t, p.alive(t.Context()), "none polls")
	poll(&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: "a"}})
	poll(&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: "a-own", NormalName: "a"}})
	poll(&workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: "b"}})
	assert.False(t, p.alive(t.Context()), "one does not poll")
	poll(&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: "b"}})
	assert.True(t, p.alive(t.Context()), "both poll, though Temporal does not answer")
	p.seen("b", time.Now().Add(-pollLimit-time.Second))
	assert.False(t, p.alive(t.Context()), "one polls no longer")
	poll(&workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueue.TaskQueue{Name: "b"}})
	assert.True(t, p.alive(t.Context()))
}

// A server is alive while it answers, whatever becomes of the database.
func TestServerIsAlive(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
			<-r.Context().Done()
		default:
			assert.Equal(t, "/healthz", r.URL.Path)
			w.WriteHeader(http.StatusOK)
		}
	}))
	defer s.Close()
	alive := answers(s.URL)
	assert.True(t, alive(t.Context()))
	close(hung)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.False(t, alive(ctx))
}

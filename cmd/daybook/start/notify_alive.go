package start

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// pollLimit is after which time without a poll a worker is hung. Temporal answers a poll after a
// minute at the latest, the SDK ends one after 70 seconds, and waits 10 seconds after an error.
const pollLimit = 2 * time.Minute

// polls know when the workers of each task queue last asked Temporal for what the workflow is to do
// next: a worker that does gets its turns. Whether Temporal answers makes no difference: a worker
// that waits for it is not hung, and a restart would not help.
type polls struct {
	// queues is of how many task queues there have to be polls.
	queues int

	mu   sync.Mutex
	last map[string]time.Time
}

func newPolls(queues int) *polls { return &polls{queues: queues, last: map[string]time.Time{}} }

// note is called for each call of Temporal.
func (p *polls) note(ctx context.Context, method string, request, answer any, c *grpc.ClientConn, call grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	poll, ok := request.(*workflowservice.PollWorkflowTaskQueueRequest)
	if !ok {
		return call(ctx, method, request, answer, c, options...)
	}
	// The queue of one worker alone has the name of all as well.
	queue := cmp.Or(poll.GetTaskQueue().GetNormalName(), poll.GetTaskQueue().GetName())
	p.seen(queue, time.Now())
	err := call(ctx, method, request, answer, c, options...)
	p.seen(queue, time.Now())
	return err
}

func (p *polls) seen(queue string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[queue] = at
}

// alive says whether the workers of every queue poll.
func (p *polls) alive(context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.last {
		if time.Since(at) > pollLimit {
			return false
		}
	}
	return len(p.last) >= p.queues
}

// answerLimit is how long a server may take to say that it runs.
const answerLimit = 5 * time.Second

// answers says whether the server at address answers requests. It asks as others do, and not for
// the database: a restart would not bring that back.
func answers(address string) func(context.Context) bool {
	c := &http.Client{Timeout: answerLimit, Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/healthz", nil)
		if err != nil {
			return false
		}
		response, err := c.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

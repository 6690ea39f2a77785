package activities

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// HeartbeatTimeout is the silence after which Temporal gives an activity to another worker.
const HeartbeatTimeout = 10 * time.Second

// beatEvery is the pause between two heartbeats.
const beatEvery = 2 * time.Second

// beatDetails is what a heartbeat says.
type beatDetails struct {
	// Ended is set by an activity that ends by itself with an error: its successor need not suspect a document of having
	// killed the worker.
	Ended bool `json:"ended,omitempty"`
	// Progress is what the turn did so far, for people who look at a running activity.
	Progress any `json:"progress,omitempty"`
}

// pulse beats an activity's heart through the client rather than through the SDK's own throttled heartbeat, because only
// so does it learn when a beat was acknowledged: a worker that slept must notice that before it leases more.
type pulse struct {
	client client.Client
	token  []byte
	cancel context.CancelFunc

	mu       sync.Mutex
	progress any
	// acknowledged is when the last acknowledged beat was sent, by the monotonic clock.
	acknowledged atomic.Pointer[time.Time]
	gone         atomic.Bool
	stop         chan struct{}
	done         chan struct{}
}

// startPulse begins to beat. The returned context ends when the activity is cancelled or no longer this worker's.
func startPulse(ctx context.Context, c client.Client) (context.Context, *pulse) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pulse{client: c, token: activity.GetInfo(ctx).TaskToken, cancel: cancel, stop: make(chan struct{}), done: make(chan struct{})}
	// The task was handed out a moment ago: that counts as an acknowledgement.
	now := time.Now()
	p.acknowledged.Store(&now)
	if activity.GetInfo(ctx).Attempt > 1 {
		// At once, and before any work: what the attempt before left as its last word must not be taken for this one's.
		p.beat(ctx, beatDetails{})
	}
	go p.run(ctx)
	return ctx, p
}

func (p *pulse) run(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		p.beat(ctx, beatDetails{Progress: p.current()})
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
	}
}

func (p *pulse) current() any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// report says what the turn did so far; it goes out with the next beat.
func (p *pulse) report(progress any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = progress
}

// beat sends one heartbeat and waits for its acknowledgement.
func (p *pulse) beat(ctx context.Context, details beatDetails) {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatEvery*2)
	defer cancel()
	err := p.client.RecordActivityHeartbeat(ctx, p.token, details)
	var notFound *serviceerror.NotFound
	switch {
	case err == nil:
		p.acknowledged.Store(&sent)
	case temporal.IsCanceledError(err), errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		// Acknowledged, and asked to end.
		p.acknowledged.Store(&sent)
		p.cancel()
	case errors.As(err, &notFound):
		p.gone.Store(true)
		p.cancel()
	}
}

// alive says whether the activity may go on leasing.
func (p *pulse) alive() bool {
	return !p.gone.Load() && time.Since(*p.acknowledged.Load()) < HeartbeatTimeout
}

// end stops beating. With an error it first leaves word that the activity ended by itself.
func (p *pulse) end(ctx context.Context, err error) {
	close(p.stop)
	<-p.done
	if err != nil && !p.gone.Load() {
		p.beat(ctx, beatDetails{Ended: true})
	}
	p.cancel()
}

// crashed says whether an earlier execution of this activity ended without a word.
func crashed(ctx context.Context) bool {
	if activity.GetInfo(ctx).Attempt <= 1 {
		return false
	}
	var last beatDetails
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &last) == nil {
		return !last.Ended
	}
	return true
}

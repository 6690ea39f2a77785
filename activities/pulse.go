package activities

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// HeartbeatTimeout is the silence after which Temporal gives an activity to another worker. It is short, because until then a lane stands
// still whose worker is gone, and may be, because nothing is taken from the silent worker for it: its leases go on for as long as it renews
// them.
const HeartbeatTimeout = 2 * time.Second

// beatEvery is the pause between two heartbeats.
const beatEvery = 600 * time.Millisecond

// aliveFor is for how long after its last acknowledged heartbeat a turn goes on leasing: when Temporal is unavailable for a moment the queue is
// worked on.
const aliveFor = 10 * time.Second

// beatDetails is what a heartbeat says.
type beatDetails struct {
	// Ended is set by an activity that ends by itself with an error: its successor need not suspect a document of having
	// killed the worker.
	Ended bool `json:"ended,omitempty"`
	// TurnID is the turn by which an activity that has ended so holds leases; empty: the one that it was given.
	TurnID string `json:"turnId,omitempty"`
	// Progress is what the turn did so far, for people who look at a running activity.
	Progress any `json:"progress,omitempty"`
}

// pulse beats an activity's heart through the client rather than through the SDK's own throttled heartbeat, because only
// so does it learn when a beat was acknowledged: a worker that slept must notice that before it leases more.
type pulse struct {
	client client.Client
	token  []byte
	cancel context.CancelFunc
	// turn is the turn that the activity works, if it is not the one that it was given.
	turn string
	// goesOn: when the activity is no longer this worker's, it ends its turn in its own time.
	goesOn bool

	mu       sync.Mutex
	progress any
	// acknowledged is when the last acknowledged beat was sent, by the monotonic clock.
	acknowledged atomic.Pointer[time.Time]
	gone         atomic.Bool
	stop         chan struct{}
	done         chan struct{}
}

// startPulse begins to beat. The returned context ends when the activity is cancelled.
func startPulse(ctx context.Context, c client.Client, turn string, goesOn bool) (context.Context, *pulse) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pulse{
		client: c, token: activity.GetInfo(ctx).TaskToken, turn: turn, goesOn: goesOn,
		cancel: cancel, stop: make(chan struct{}), done: make(chan struct{}),
	}
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), HeartbeatTimeout)
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
		if !p.goesOn {
			p.cancel()
		}
	}
}

// alive says whether the activity may go on leasing.
func (p *pulse) alive() bool {
	return !p.gone.Load() && time.Since(*p.acknowledged.Load()) < aliveFor
}

// end stops beating. With an error it first leaves word that the activity ended by itself.
func (p *pulse) end(ctx context.Context, err error) {
	close(p.stop)
	<-p.done
	if err != nil && !p.gone.Load() {
		p.beat(ctx, beatDetails{Ended: true, TurnID: p.turn})
	}
	p.cancel()
}

// maxSilent bounds how many earlier executions are asked about: what older ones held is reclaimed by now.
const maxSilent = 10

// resume says by which turn an execution of an activity works, which was given a turn. One that follows another which ended by itself
// goes on with that one's turn. One that follows another which fell silent has a turn of its own: the other may be alive after all, and
// works what it holds; if it is not, that is reclaimed. silent names the turns of all that may be alive.
func resume(ctx context.Context, given string) (turn string, silent []string) {
	attempt := activity.GetInfo(ctx).Attempt
	if attempt <= 1 {
		return given, nil
	}
	var last beatDetails
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &last) == nil && last.Ended {
		return cmp.Or(last.TurnID, given), nil
	}
	silent = []string{given}
	for n := max(2, attempt-maxSilent); n < attempt; n++ {
		silent = append(silent, given+"/"+strconv.Itoa(int(n)))
	}
	return given + "/" + strconv.Itoa(int(attempt)), silent
}

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

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// HeartbeatTimeout is the time without a heartbeat after which Temporal gives an activity to
// another worker. It is short, because until then the lane of a worker that died does nothing. It
// may be short, because the silent worker, if it is alive, keeps its leases for as long as it
// renews them.
const HeartbeatTimeout = 2 * time.Second

// beatEvery is the pause between two heartbeats.
const beatEvery = 600 * time.Millisecond

// aliveFor is for how long after its last acknowledged heartbeat a turn goes on leasing, so that
// work goes on while Temporal is unavailable for a moment.
const aliveFor = 10 * time.Second

// beatDetails is what a heartbeat says.
type beatDetails struct {
	// Ended is set by an activity that ends by itself with an error: its successor need not suspect a
	// document of having killed the worker.
	Ended bool `json:"ended,omitempty"`
	// TurnID is the turn by which an activity that ended with an error holds leases; empty: the turn
	// that it was given.
	TurnID string `json:"turnId,omitempty"`
	// Progress is what the turn did so far, for people who look at a running activity.
	Progress any `json:"progress,omitempty"`
	models.TurnHeartbeat
}

// pulse sends an activity's heartbeats through the client rather than through the SDK, which
// throttles them and does not say when one was acknowledged: a worker that was suspended must
// notice that before it leases more.
type pulse struct {
	client client.Client
	token  []byte
	cancel context.CancelFunc
	// turn is the turn that the activity works, if it is not the one that it was given.
	turn string

	mu       sync.Mutex
	progress any
	trouble  *models.TurnTrouble
	// acknowledged is when the last acknowledged beat was sent, by the monotonic clock.
	acknowledged atomic.Pointer[time.Time]
	gone         atomic.Bool
	stop         chan struct{}
	done         chan struct{}
}

// startPulse begins to beat. The returned context ends when the activity is cancelled.
func startPulse(ctx context.Context, c client.Client, turn string) (context.Context, *pulse) {
	ctx, cancel := context.WithCancel(ctx)
	p := &pulse{
		client: c, token: activity.GetInfo(ctx).TaskToken, turn: turn,
		cancel: cancel, stop: make(chan struct{}), done: make(chan struct{}),
	}
	// The task was handed out a moment ago: that counts as an acknowledgement.
	now := time.Now()
	p.acknowledged.Store(&now)
	if activity.GetInfo(ctx).Attempt > 1 {
		// At once, and before any work: the last heartbeat of the attempt before must not be taken for
		// one of this attempt.
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
		p.beat(ctx, p.current())
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
	}
}

func (p *pulse) current() beatDetails {
	p.mu.Lock()
	defer p.mu.Unlock()
	return beatDetails{Progress: p.progress, TurnHeartbeat: models.TurnHeartbeat{Trouble: p.trouble}}
}

// meet says that the database fails the turn's statements; nil: it answers again.
func (p *pulse) meet(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.trouble = nil
		return
	}
	t := models.TurnTrouble{Says: store.Explain(err), Since: time.Now()}
	if p.trouble != nil {
		t.Since = p.trouble.Since
	}
	p.trouble = &t
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
	case temporal.IsCanceledError(err), errors.Is(err, activity.ErrActivityPaused),
		errors.Is(err, activity.ErrActivityReset):
		// Acknowledged, and asked to end.
		p.acknowledged.Store(&sent)
		p.cancel()
	case errors.As(err, &notFound):
		// The activity was given to another worker: this one ends its turn, and is not cancelled.
		p.gone.Store(true)
	}
}

// alive says whether the activity may go on leasing.
func (p *pulse) alive() bool {
	return !p.gone.Load() && time.Since(*p.acknowledged.Load()) < aliveFor
}

// end stops the heartbeats. With an error it first sends one that says that the activity ended by
// itself.
func (p *pulse) end(ctx context.Context, err error) {
	close(p.stop)
	<-p.done
	if err != nil && !p.gone.Load() {
		p.beat(ctx, beatDetails{Ended: true, TurnID: p.turn})
	}
	p.cancel()
}

// maxSilent limits how many earlier executions are asked about: what older ones held is reclaimed
// by now.
const maxSilent = 10

// resume says by which turn an execution of an activity works. If the execution before it ended by
// itself, it goes on with that one's turn. If the execution before it fell silent, it has a turn of
// its own: the silent one may be alive and work what it holds; if it is not, its leases expire and
// are reclaimed. silent names the turns of all executions that may be alive.
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

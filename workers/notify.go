package workers

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/queue"
)

const (
	// notifyEvery is the pause between two statements that notify: a commit that notifies waits for
	// the others that do, so there are few.
	notifyEvery = 50 * time.Millisecond
	// mostWaiting is how many events wait to be sent.
	mostWaiting = 10_000
	// notifyLast bounds what is sent when the worker ends.
	notifyLast = 2 * time.Second
)

// notifier tells other processes of events, by notifications of PostgreSQL. It implements
// events.Sink.
type notifier struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	stop chan struct{}
	done chan struct{}
	end  sync.Once

	mu      sync.Mutex
	waiting []queue.Event
	missed  int
}

// startNotifying begins to send what it observes, until close.
func startNotifying(pool *pgxpool.Pool, log *slog.Logger) *notifier {
	n := &notifier{pool: pool, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go n.run()
	return n
}

// Observe implements events.Sink. It takes what ends an attempt, and what was reclaimed.
func (n *notifier) Observe(batch []events.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range batch {
		e := &batch[i]
		switch {
		case !e.Name.Ends() && e.Name != events.Reclaimed:
		case len(n.waiting) >= mostWaiting:
			n.missed++
		default:
			n.waiting = append(n.waiting, eventOf(e))
		}
	}
}

func (n *notifier) run() {
	defer close(n.done)
	ticker := time.NewTicker(notifyEvery)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-n.stop:
			ctx, cancel := context.WithTimeout(context.Background(), notifyLast)
			defer cancel()
			_ = n.send(ctx)
			return
		case <-ticker.C:
		}
		err := n.send(context.Background())
		if err != nil && !failing {
			n.log.Warn("other processes could not be told of events; they hear that some are missed when the database answers", "error", err)
		}
		failing = err != nil
	}
}

// send notifies of what waits. What cannot be sent is counted as missed.
func (n *notifier) send(ctx context.Context) error {
	n.mu.Lock()
	some, missed := n.waiting, n.missed
	n.waiting, n.missed = nil, 0
	n.mu.Unlock()
	if missed > 0 {
		some = append(some, queue.Event{Name: queue.EventMissed, Missed: missed, At: time.Now()})
	}
	if len(some) == 0 {
		return nil
	}
	lists, tooLong := payloads(some)
	if tooLong > 0 {
		last, _ := payloads([]queue.Event{{Name: queue.EventMissed, Missed: tooLong, At: time.Now()}})
		lists = append(lists, last...)
	}
	err := store.NotifyEvents(ctx, n.pool, lists)
	if err != nil {
		n.mu.Lock()
		n.missed += missed
		for i := range some {
			if some[i].Name != queue.EventMissed {
				n.missed++
			}
		}
		n.mu.Unlock()
	}
	return err
}

// payloads are events as JSON lists, each no longer than a notification may be. tooLong counts the
// events that are left out, because one alone is longer, as with an error code or a worker's name
// of some kilobytes: PostgreSQL would refuse the statement, and with it all others.
func payloads(some []queue.Event) (lists []string, tooLong int) {
	list := []byte{'['}
	for i := range some {
		one, err := json.Marshal(&some[i])
		if err != nil || len(one)+2 > store.MaxNotification {
			tooLong++
			continue
		}
		if len(list) > 1 && len(list)+len(one)+2 > store.MaxNotification {
			lists = append(lists, string(append(list, ']')))
			list = []byte{'['}
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, one...)
	}
	if len(list) > 1 {
		lists = append(lists, string(append(list, ']')))
	}
	return lists, tooLong
}

// close sends what waits, and ends.
func (n *notifier) close() {
	n.end.Do(func() { close(n.stop) })
	<-n.done
}

package main

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	probeEvery = 200 * time.Millisecond
	probeLimit = 2 * time.Second
	// databaseDown is the impediment that the probe itself notices.
	databaseDown = "database"
)

// probed are the kinds of which one each is enqueued each time: one of each queue and worker.
var probed = []string{"document", "shared", "sql", "task"}

// probe enqueues, on a connection that none of the troubles of connections touches, and looks how far
// the work is. So it knows whether the primary takes writes, and when work goes on.
type probe struct {
	load *load
	pool *pgxpool.Pool

	mu sync.Mutex
	// active are the troubles of the moment that work cannot go on under, and window all since work last
	// went on.
	active map[string]int
	window map[string]bool
	// clearSince is when the last one ended, and base how far the work was then.
	clearSince time.Time
	base       progress
	moved      [len(progress{})]time.Time
	// again is when each kind was first seen to go on after that.
	again      [len(progress{})]time.Time
	idle       time.Duration // the longest time without work of one of the kinds
	recoveries []recovery
	// reclaims are how long what killed workers held was held by dead ones, while nothing else was wrong.
	reclaims  []time.Duration
	up        bool
	lastError error // why the primary took no write; nil: it did
}

// progress is how far the work of each of the probed kinds is.
type progress [4]int64

// recovery is how long it took until work of each kind went on, after the last of some troubles.
type recovery struct {
	troubles []string
	took     time.Duration
	last     string // the kind that went on last
}

func newProbe(ctx context.Context, l *load, leader, address string) (*probe, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	u.Host = leader
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4
	p := &probe{load: l, active: map[string]int{}, window: map[string]bool{}}
	p.pool, err = pgxpool.NewWithConfig(ctx, config)
	return p, err
}

// touch notes a trouble under which work goes on.
func (p *probe) touch(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window[name] = true
}

// impede notes that a trouble begins under which work does not go on; the function that it returns,
// that it has ended.
func (p *probe) impede(name string) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[name]++
	p.window[name] = true
	p.clearSince = time.Time{}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.active[name]--; p.active[name] <= 0 {
			delete(p.active, name)
		}
	})
}

// run probes until ctx ends.
func (p *probe) run(ctx context.Context) {
	var down func()
	defer func() {
		if down != nil {
			down()
		}
	}()
	for ; ctx.Err() == nil; pause(ctx, probeEvery) {
		err := p.load.add(ctx, p.pool, probeLimit, probed...)
		var at progress
		if err == nil {
			at, err = p.progress(ctx)
		}
		p.mu.Lock()
		p.lastError = err
		p.mu.Unlock()
		if err != nil {
			if down == nil && ctx.Err() == nil {
				down = p.impede(databaseDown)
			}
			p.note(false, progress{})
			continue
		}
		if down != nil {
			down()
			down = nil
		}
		p.note(true, at)
	}
}

func (p *probe) progress(ctx context.Context) (at progress, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	const look = `
SELECT coalesce((SELECT max(id) FROM daybook.impacts), 0),
       coalesce((SELECT max(id) FROM chaos.effects WHERE kind = 'shared'), 0),
       coalesce((SELECT max(id) FROM chaos.effects WHERE kind = 'sql'), 0),
       coalesce((SELECT max(id) FROM chaos.effects WHERE kind = 'task'), 0)`
	err = p.pool.QueryRow(ctx, look).Scan(&at[0], &at[1], &at[2], &at[3])
	return at, err
}

// note notes how far the work is.
func (p *probe) note(up bool, at progress) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up = up; !up {
		return
	}
	if p.clearSince.IsZero() && len(p.active) == 0 {
		p.clearSince, p.base, p.again = now, at, [len(progress{})]time.Time{}
	}
	on := !p.clearSince.IsZero()
	for i := range at {
		if p.moved[i].IsZero() {
			p.moved[i] = now
		}
		if at[i] != p.base[i] {
			p.idle = max(p.idle, now.Sub(p.moved[i]))
			p.moved[i] = now
			if p.again[i].IsZero() {
				p.again[i] = now
			}
		}
		on = on && at[i] > p.base[i]
	}
	if on && len(p.window) > 0 {
		last := 0
		for i := range p.moved {
			if p.again[i].After(p.again[last]) {
				last = i
			}
		}
		p.recoveries = append(p.recoveries, recovery{slices.Sorted(maps.Keys(p.window)), now.Sub(p.clearSince), probed[last]})
		p.window = map[string]bool{}
	}
	if on {
		p.base, p.clearSince, p.again = at, now, [len(progress{})]time.Time{}
	}
}

// clear says whether nothing is wrong at the moment.
func (p *probe) clear() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.up && len(p.active) == 0
}

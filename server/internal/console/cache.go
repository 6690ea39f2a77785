package console

import (
	"context"
	"sync"
	"time"
)

const (
	// freshFor is for how long a remembered answer is shown without asking again; a viewer then still
	// sees it while the next one is made.
	freshFor = 10 * time.Second
	// oldAfter is after how long a remembered answer is worth nothing: it is waited for.
	oldAfter = time.Minute
	// answersKept bounds how many are remembered, one an organization.
	answersKept = 100
)

// remembered makes answers that take long once for all viewers: a page never waits for one while
// there is a recent one.
type remembered[T any] struct {
	mu      sync.Mutex
	answers map[string]*remember[T]
}

type remember[T any] struct {
	value T
	at    time.Time
	// making is closed when the answer that is being made is there; nil: none is.
	making chan struct{}
}

// get returns the answer for a key, made by ask at most freshFor ago, or a little longer while the
// next one is made. ok is false when ctx ends before there is one.
func (m *remembered[T]) get(ctx context.Context, key string, now func() time.Time,
	ask func(ctx context.Context) T,
) (value T, at time.Time, ok bool) {
	m.mu.Lock()
	if m.answers == nil || len(m.answers) > answersKept && m.answers[key] == nil {
		m.answers = map[string]*remember[T]{}
	}
	r := m.answers[key]
	if r == nil {
		r = &remember[T]{}
		m.answers[key] = r
	}
	age := now().Sub(r.at)
	if age > freshFor && r.making == nil {
		made := make(chan struct{})
		r.making = made
		asking := context.WithoutCancel(ctx) // another viewer may wait for it
		go func() {
			answer := ask(asking)
			m.mu.Lock()
			defer m.mu.Unlock()
			r.value, r.at, r.making = answer, now(), nil
			close(made)
		}()
	}
	making := r.making
	if age <= oldAfter || making == nil {
		defer m.mu.Unlock()
		return r.value, r.at, true
	}
	m.mu.Unlock()
	select {
	case <-making:
		m.mu.Lock()
		defer m.mu.Unlock()
		return r.value, r.at, true
	case <-ctx.Done():
		return value, at, false
	}
}

// forget has the next viewer wait for a new answer, after a change.
func (m *remembered[T]) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers = nil
}

package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// progress shows how far a command is: a bar on a terminal, and elsewhere nothing.
type progress struct {
	app     *app
	label   string
	visible bool
	// percent shows the share instead of the counts, for totals that mean nothing to people.
	percent bool

	mu          sync.Mutex
	done, total int64
	drawn       time.Time
}

// newProgress starts a bar; a total of 0 is unknown.
func (a *app) newProgress(label string, total int64) *progress {
	return &progress{app: a, label: label, total: total, visible: isTerminal(a.stderr) && !a.json}
}

// set moves the bar.
func (p *progress) set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	p.draw()
}

// add moves the bar by n.
func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.draw()
}

// draw is called with mu held.
func (p *progress) draw() {
	if !p.visible || time.Since(p.drawn) < 50*time.Millisecond && p.done < p.total {
		return
	}
	p.drawn = time.Now()
	const width = 30
	if p.total <= 0 {
		_, _ = fmt.Fprintf(p.app.stderr, "\r%s %d\x1b[K", p.label, p.done)
		return
	}
	full := int(min(p.done, p.total) * width / p.total)
	text := fmt.Sprintf("%d of %d", p.done, p.total)
	if p.percent {
		text = fmt.Sprintf("%d %%", min(p.done, p.total)*100/p.total)
	}
	_, _ = fmt.Fprintf(p.app.stderr, "\r%s [%s%s] %s\x1b[K", p.label, strings.Repeat("#", full), strings.Repeat(".", width-full), text)
}

// end takes the bar off the screen.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visible {
		_, _ = fmt.Fprint(p.app.stderr, "\r\x1b[K")
	}
	p.visible = false
}

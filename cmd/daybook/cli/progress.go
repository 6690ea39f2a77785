package cli

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// Progress shows how far a command is, on the error stream and never beside JSON: a bar on a
// terminal, and elsewhere a line now and then, once it has gone on for a while.
type Progress struct {
	app     *App
	label   string
	visible bool
	// screen: it is drawn anew in its place.
	screen bool
	// Percent shows the share instead of the counts, for totals that mean nothing to people.
	Percent bool

	mu          sync.Mutex
	done, total int64
	drawn       time.Time
}

// NewProgress starts a bar; a total of 0 is unknown.
func (a *App) NewProgress(label string, total int64) *Progress {
	p := &Progress{app: a, label: label, total: total, screen: IsTerminal(a.Stderr), visible: !a.JSON}
	if a.drawing.Store(p.visible); !p.screen {
		p.drawn = time.Now()
	}
	return p
}

// Set moves the bar.
func (p *Progress) Set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	p.draw()
}

// Add moves the bar by n.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.draw()
}

// draw is called with mu held.
func (p *Progress) draw() {
	if !p.visible || p.screen && time.Since(p.drawn) < 50*time.Millisecond && p.done < p.total {
		return
	}
	if !p.screen {
		p.line()
		return
	}
	p.drawn = time.Now()
	const width = 30
	if p.total <= 0 {
		_, _ = fmt.Fprintf(p.app.Stderr, "\r%s %s\x1b[K", p.label, p.share())
		return
	}
	full := int(min(p.done, p.total) * width / p.total)
	_, _ = fmt.Fprintf(p.app.Stderr, "\r%s [%s%s] %s\x1b[K", p.label, strings.Repeat("#", full),
		strings.Repeat(".", width-full), p.share())
}

// share says how much is done.
func (p *Progress) share() string {
	switch {
	case p.total <= 0:
		return phrase.Count(p.done)
	case p.Percent:
		return fmt.Sprintf("%d %%", min(p.done, p.total)*100/p.total)
	}
	return phrase.Count(p.done) + " of " + phrase.Count(p.total)
}

// line writes how far it is as a line of its own, when the last one was a while ago.
func (p *Progress) line() {
	if time.Since(p.drawn) < cmp.Or(p.app.waitsEvery, waitsElsewhere) {
		return
	}
	p.drawn = time.Now()
	_, _ = fmt.Fprintf(p.app.Stderr, "%s: %s\n", p.label, p.share())
}

// End takes the bar off the screen.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.visible && p.screen {
		_, _ = fmt.Fprint(p.app.Stderr, "\r\x1b[K")
	}
	p.visible = false
	p.app.drawing.Store(false)
}

//go:build browser

package browser_test

import (
	"fmt"
	"slices"
	"sync"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// problems are errors that a browser reports of a page.
type problems struct {
	mu    sync.Mutex
	texts []string
}

func (p *problems) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.texts = append(p.texts, e.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		p.texts = append(p.texts, "a script ran: "+e.Message)
	case *cdplog.EventEntryAdded:
		// A page of an error is reported as a failed request as well; its status is the tests' own
		// matter.
		if e.Entry.Level == cdplog.EntryLevelError && e.Entry.Source != cdplog.EntrySourceNetwork {
			p.texts = append(p.texts, fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text))
		}
	}
}

func (p *problems) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.texts)
}

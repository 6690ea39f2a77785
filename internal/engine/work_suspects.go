package engine

import (
	"cmp"
	"slices"

	"github.com/daybook-dev/daybook/internal/store"
)

// suspects puts the leased jobs first whose worker died with them before, and says how many of all
// may be begun now. A job that kills its worker must be found, and other jobs are charged if they
// are being worked when the worker dies. So bulks that were reclaimed once are worked in tenths,
// jobs that were reclaimed again one by one, and no other jobs meanwhile. Until they can begin, the
// turn gets no more jobs: those could be picked, and begin without going through the queue. busy:
// more goes on than the calls.
func (w *worker) suspects(queue []store.Job, busy bool) int {
	suspicion := func(j store.Job) int {
		if h, ok := w.engine.handlers.Handling(j.Type); j.Reclaims == 1 && (!ok || !h.Bulk || h.Parallel == 1) {
			return 0
		}
		return min(j.Reclaims, 2)
	}
	slices.SortStableFunc(queue, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(suspicion(b), suspicion(a)), cmp.Compare(a.Type, b.Type)*min(1, suspicion(a)))
	})
	worst := suspicion(queue[0])
	switch {
	case worst == 0 && !w.careful:
		return len(queue)
	case w.active > 0, busy:
		// A refill may begin what it picks. What has ended would be charged, too, until it is
		// completed.
		w.careful = true
		return 0
	}
	w.careful = worst > 0
	switch worst {
	case 0:
		return len(queue)
	case 1:
		h, _ := w.engine.handlers.Handling(queue[0].Type)
		n := 1
		for n < h.Parallel/10 && n < len(queue) && suspicion(queue[n]) == 1 && queue[n].Type == queue[0].Type {
			n++
		}
		return n
	}
	return 1
}

package due

import (
	"context"
	"time"
)

// What the tests of package store need and cannot have from a _test.go file of this package.

// ReadAll scans until everything that is due is known.
func (p *Partitions) ReadAll(ctx context.Context, room Room) error {
	if _, _, err := p.scanRecent(ctx, time.Now(), false, room); err != nil {
		return err
	}
	for {
		again, err := p.scanFull(ctx, true, true, room)
		if err != nil || again == 0 {
			return err
		}
		time.Sleep(again)
	}
}

// HurryPoll lets the next poll scan, whatever the last scan has cost, and as if all had been read
// before.
func (p *Partitions) HurryPoll() {
	p.full.mu.Lock()
	defer p.full.mu.Unlock()
	p.full.nextPartAt, p.full.readOnce, p.full.lastPartSlow = time.Time{}, true, false
}

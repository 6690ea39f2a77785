package engine

// spawn runs f beside the loop, which calls it: in a goroutine that has ended another f, whose stack has grown already, or in a new one. To grow
// their stacks takes new goroutines longer than a short job does. Goroutines wait for another f until the turn begins no more jobs.
func (r *runner) spawn(f func()) {
	select {
	case r.hand <- f:
	default:
		go func() {
			for f != nil {
				f()
				f = nil // what waits keeps nothing
				select {
				case f = <-r.hand:
				case <-r.quiet:
				}
			}
		}()
	}
}

// spawnNoMore ends the goroutines that wait for another part of the turn.
func (r *runner) spawnNoMore() {
	if !r.ending {
		r.ending = true
		close(r.quiet)
	}
}

package workers_test

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// running is the line of /proc/stat that says how many threads run, or could.
var running = regexp.MustCompile(`(?m)^procs_running (\d+)$`)

// crowd watches how crowded the machine is while a test measures a time.
type crowd struct {
	stop chan struct{}
	// mean gets how many threads wanted each processor.
	mean chan float64
}

func watchCrowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{stop: make(chan struct{}), mean: make(chan float64, 1)}
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for sum, n := 0.0, 0.0; ; {
			select {
			case <-c.stop:
				c.mean <- sum / max(n, 1) / float64(runtime.NumCPU())
				return
			case <-tick.C:
			}
			stat, _ := os.ReadFile("/proc/stat") // not everywhere: then the machine counts as idle
			if m := running.FindSubmatch(stat); m != nil {
				if threads, err := strconv.ParseFloat(string(m[1]), 64); err == nil {
					sum, n = sum+threads, n+1
				}
			}
		}
	}()
	t.Cleanup(func() { c.within(0) })
	return c
}

// within is a bound for an ordinary machine, on which up to two threads want each processor,
// stretched for one that is more crowded than that. It ends the watch; called again it returns 0.
func (c *crowd) within(bound time.Duration) time.Duration {
	select {
	case <-c.stop:
		return 0
	default:
		close(c.stop)
		return time.Duration(float64(bound) * max(1, <-c.mean/2))
	}
}

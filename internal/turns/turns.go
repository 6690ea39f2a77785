// Package turns hands the engine of a worker to its activities. Their constructor takes types of internal packages, so that it is
// no part of what package activities exports.
package turns

import (
	"os"
	"strconv"
	"sync/atomic"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/engine"
)

// Options say what the activities of one worker process are made of.
type Options struct {
	Client client.Client
	Engine *engine.Engine
	// Settings is what the environment says: activities.Settings.
	Settings any
	// Resumes: what a silent execution of a turn holds is reclaimed by the next one, under the same turn. It is for a kind whose leases last
	// for minutes after their worker has died. Without it the silent one may go on until its leases expire.
	Resumes bool
	// Worker names the process in leases and attempts; empty: host and process id.
	Worker string
}

var activities atomic.Pointer[func(o Options) any]

// SetActivities says how the activities are made. Package activities calls it once, when it is initialized.
func SetActivities(f func(o Options) any) { activities.Store(&f) }

// Activities makes the activities of one queue, for a worker to register: an *activities.Queue.
func Activities(o Options) any { return (*activities.Load())(o) }

// ProcessName names this process by its host and its id.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
}

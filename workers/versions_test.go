package workers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// versioned is a job with a limit by its key. A Stuck one does not end in the process "new-victim".
type versioned struct {
	Key   string `json:"key"`
	Stuck bool   `json:"stuck"`
}

func (versioned) JobType() string { return "versioned" }

// registerVersioned registers version 2 of the handler in processes whose name begins with "new",
// and version 1 in others.
func registerVersioned(r *jobs.Registry, worker string) {
	policy := jobs.Policy{Version: 1, Timeout: time.Hour, Limit: jobs.Limit{By: "payload.key", Parallel: 2}}
	if strings.HasPrefix(worker, "new") {
		policy.Version = 2
	}
	jobs.Register(r, policy, func(ctx context.Context, job *jobs.Job[versioned]) error {
		if job.Payload.Stuck && worker == "new-victim" {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
		return nil
	})
}

// TestKilledDeployment kills the only worker of a newer build while it works beside one of an older
// build, which reclaims its turns: the older one begins none of the jobs that need the newer, and
// works all others; the next worker of the newer build works the rest.
func TestKilledDeployment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	victim := b.process("new-victim", envNaps+"=yes")
	b.runJobs(`{}`)
	const each = 40
	enqueue := func() {
		var all []queue.NewJob
		for i := range each {
			for _, version := range []int{0, 1, 2} {
				all = append(all, queue.NewJob{
					OrgID:   org,
					Payload: versioned{Key: fmt.Sprintf("version %d, %d", version, i%8), Stuck: version == 2 && i >= 20 && i%2 == 0},
					Options: queue.JobOptions{MinVersion: version},
				})
			}
		}
		_, err := queue.EnqueueJobs(t.Context(), b.Pool, all)
		require.NoError(t, err)
	}
	b.eventually("the limit is set", time.Minute, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_limits WHERE scope = 'versioned'`) == 1
	})
	enqueue()
	const stuck = `SELECT count(*) FROM daybook.jobs WHERE working AND worker = 'new-victim' AND (payload->>'stuck')::boolean`
	b.eventually("the victim holds places", time.Minute, func() bool { return fixture.Count(t, b.Pool, stuck) >= 4 })
	b.process("old", envNaps+"=yes")
	b.bothLive()
	enqueue()
	b.kill(victim, "new-victim")
	const open = `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND coalesce(min_version, 0) `
	b.eventually("the older build works what it may", time.Minute, func() bool { return fixture.Count(t, b.Pool, open+`< 2`) == 0 })
	b.eventually("what the victim held is pending", time.Minute, func() bool { return b.jobsIn("leased") == 0 })
	assert.GreaterOrEqual(t, fixture.Count(t, b.Pool, open+`= 2`), each)
	b.process("new-survivor", envNaps+"=yes")
	b.eventually("the newer build works the rest", 2*time.Minute, func() bool { return fixture.Count(t, b.Pool, open+`<= 2`) == 0 })
	assert.Equal(t, 6*each, b.jobsIn("completed"))
	assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.attempts a JOIN daybook.jobs j ON j.id = a.job_id WHERE j.min_version = 2 AND a.worker NOT LIKE 'new%'`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost' AND worker <> 'new-victim'`))
	assert.LessOrEqual(t, fixture.Count(t, b.Pool, mostAtOnce), 2)
}

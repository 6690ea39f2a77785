package jobs_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// panics is a value whose JSON cannot be made.
type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no JSON") }

// unstorable are results that the database cannot hold, and what is said of each.
func unstorable() map[string]struct {
	result any
	says   string
} {
	deep := json.RawMessage(strings.Repeat("[", 3000) + strings.Repeat("]", 3000))
	return map[string]struct {
		result any
		says   string
	}{
		"NUL":                 {map[string]string{"text": "a\x00b"}, `\u0000`},
		"NUL in a key":        {json.RawMessage(`{"\u0000": 1}`), `\u0000`},
		"half a surrogate":    {json.RawMessage(`"\ud800"`), "surrogate"},
		"invalid UTF-8":       {json.RawMessage("\"\xff\""), "UTF-8"},
		"no JSON":             {json.RawMessage(`{`), "JSON"},
		"NaN":                 {math.NaN(), "NaN"},
		"a channel":           {make(chan int), "chan int"},
		"panics":              {panics{}, "panic: no JSON"},
		"a number too large":  {json.RawMessage(`1e999999`), "digits"},
		"nested too deep":     {deep, "deeper than 500"},
		"more than is stored": {strings.Repeat("x", models.MaxResultBytes), "may have 16777216"},
	}
}

// The work is done: the job is completed without a result that cannot be stored, what its
// transaction wrote is there, and the job, its attempt and the log say why.
func TestAJobIsCompletedWithoutAResultThatCannotBeStored(t *testing.T) {
	t.Parallel()
	all := unstorable()
	for way, register := range map[string]func(b *bundle){
		"a handler": func(b *bundle) {
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.SetResult(all[job.Payload.Name].result)
				return nil
			})
		},
		"the completing transaction": func(b *bundle) {
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					job.SetResult(all[job.Payload.Name].result)
					_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
					return err
				})
				return nil
			})
		},
		"a bulk handler": func(b *bundle) {
			jobs.RegisterBulk(b.registry, jobs.Policy{},
				func(ctx context.Context, tx pgx.Tx, some []*jobs.Job[greet]) ([]error, error) {
					for _, job := range some {
						job.SetResult(all[job.Payload.Name].result)
						if _, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name); err != nil {
							return nil, err
						}
					}
					return nil, nil
				})
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text PRIMARY KEY)`)
			register(b)
			ids := map[string]string{}
			for name := range all {
				ids[name] = b.enqueue(greet{Name: name}, queue.JobOptions{})
			}
			r := b.work()
			assert.Equal(t, len(all), r.Completed)
			for name, id := range ids {
				j := b.row(id)
				assert.Equal(t, models.JobCompleted, j.State, name)
				assert.Equal(t, string(models.CodeResultNotStored), j.Code, name)
				assert.Contains(t, j.Error, "is not stored: ", name)
				assert.Contains(t, j.Error, all[name].says, name)
				assert.Empty(t, j.Result, name)
				assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND outcome = 'completed' AND error_code = 'RESULT_NOT_STORED' AND error = $2`, id, j.Error), name)
				assert.Contains(t, b.log.String(), id, name)
			}
			if way != "a handler" {
				assert.Equal(t, len(all), b.count(`SELECT count(*) FROM greeted`))
			}
		})
	}
}

// Progress that cannot be stored is an error of the call, which says why and ends nothing by
// itself.
func TestProgressThatCannotBeStored(t *testing.T) {
	t.Parallel()
	all := unstorable()
	b := setup(t)
	said := map[string]error{}
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		for name, c := range all {
			if name != "panics" {
				said[name] = job.Progress(ctx, c.result)
			}
		}
		return job.Progress(ctx, "done")
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	assert.Equal(t, models.JobCompleted, b.row(id).State)
	assert.Len(t, said, len(all)-1)
	for name, err := range said {
		if assert.Error(t, err, name) {
			assert.NotContains(t, err.Error(), "SQLSTATE", name)
		}
	}
}

// An error's text is stored without what the database cannot hold.
func TestErrorTextsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		return jobs.Final(textError("a\x00b\xff" + strings.Repeat("ü", 5000)))
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, string(models.CodeHandlerError), j.Code)
	assert.True(t, strings.HasPrefix(j.Error, "ab�ü"), j.Error)
}

type textError string

func (e textError) Error() string { return string(e) }

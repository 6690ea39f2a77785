package jobs_test
import ("testing";"time";"github.com/daybook-dev/daybook/jobs";"fmt";"context")
func TestZZ(t *testing.T){
 for turn := 0; turn < 2; turn++ {
 for _, mode := range []string{"off","many","few"} {
 b := setup(t)
 jobs.Register(b.registry, jobs.Policy{Parallel: 100}, func(context.Context, *jobs.Job[greet]) error { return nil })
 if mode != "off" { b.limit(jobs.Limit{By: "payload.name", Parallel: 2}) }
 keys := 20000
 if mode == "few" { keys = 100 }
 began := time.Now()
 b.exec(`SELECT count(*) FROM daybook.enqueue_jobs(array_fill('acme'::text, ARRAY[20000]), array_fill('greet'::text, ARRAY[20000]), ARRAY(SELECT jsonb_build_object('name', 'k' || i % $1::int) FROM generate_series(1,20000) i))`, keys)
 enq := time.Since(began)
 began = time.Now()
 b.lanes(2, b.worker(b.registry), "one")
 for b.count(`SELECT count(*) FROM (SELECT FROM daybook.jobs WHERE state <> 'completed' LIMIT 1) x`) > 0 { time.Sleep(20*time.Millisecond) }
 fmt.Println(mode, "enqueue", enq, "drain", time.Since(began), 20000/time.Since(began).Seconds())
 }}
}

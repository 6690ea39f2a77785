package inspect_test

import (
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/admin/inspect"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Greet is a payload.
type Greet struct {
	Name string `json:"name"`
}

// JobType implements queue.Payload.
func (Greet) JobType() string { return "greet" }

// Mail is the payload of a task.
type Mail struct {
	To string `json:"to"`
}

// TaskType implements queue.TaskPayload.
func (Mail) TaskType() string { return "email" }

// greeted is a database with three jobs of an organization, and a reader.
func greeted() (*pgtest.Example, *inspect.Reader) {
	e := pgtest.NewExample()
	for _, name := range []string{"Ann", "Bob", "Cid"} {
		if _, err := queue.EnqueueJob(e.Context(), e.Pool, "acme", Greet{name},
			queue.JobOptions{IdempotencyKey: name}); err != nil {
			panic(err)
		}
	}
	r, err := inspect.New(e.Pool)
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { _ = r.Close() })
	return e, r
}

// All pages of a list, one after the other.
func ExampleNew() {
	e, r := greeted()
	defer e.Close()

	page := inspect.Page{Limit: 2}
	for {
		jobs, err := r.Jobs(e.Context(), inspect.JobFilter{OrgID: "acme", State: models.JobPending}, page)
		if err != nil {
			panic(err)
		}
		for _, j := range jobs.Jobs {
			fmt.Println(j.Type, *j.IdempotencyKey)
		}
		if page.Cursor = jobs.Next; page.Cursor == "" {
			break
		}
	}
	// Output:
	// greet Cid
	// greet Bob
	// greet Ann
}

func ExampleReader_Job() {
	e, r := greeted()
	defer e.Close()

	found, err := r.Jobs(e.Context(), inspect.JobFilter{IdempotencyKey: "Bob"}, inspect.Page{})
	if err != nil {
		panic(err)
	}
	d, err := r.Job(e.Context(), "acme", found.Jobs[0].ID)
	fmt.Println(string(d.Payload), d.State, d.AttemptRows, err)
	_, err = r.Job(e.Context(), "another", found.Jobs[0].ID)
	fmt.Println(errors.Is(err, inspect.ErrJobNotFound))
	// Output:
	// {"name": "Bob"} pending 0 <nil>
	// true
}

func ExampleReader_AccountingJobs() {
	e, r := greeted()
	defer e.Close()

	if _, err := queue.EnqueueAccountingJob(e.Context(), e.Pool,
		queue.AccountingJob{OrgID: "acme", DocumentID: "invoice-17", Version: 1}); err != nil {
		panic(err)
	}

	page, err := r.AccountingJobs(e.Context(), inspect.AccountingFilter{OrgID: "acme"}, inspect.Page{})
	fmt.Println(len(page.Jobs), page.Jobs[0].DocumentID, page.Next == "", err)
	d, err := r.AccountingJob(e.Context(), "acme", "invoice-17")
	fmt.Println(d.State, len(d.Attempts), err)
	// Output:
	// 1 invoice-17 true <nil>
	// pending 0 <nil>
}

func ExampleReader_Tasks() {
	e, r := greeted()
	defer e.Close()

	task, err := queue.EnqueueTask(e.Context(), e.Pool, Mail{"ann@example.com"}, queue.TaskOptions{})
	if err != nil {
		panic(err)
	}

	page, err := r.Tasks(e.Context(), inspect.TaskFilter{State: models.TaskReady}, inspect.Page{})
	fmt.Println(len(page.Tasks), page.Tasks[0].ID == task.ID, page.Tasks[0].Type, err)
	d, err := r.Task(e.Context(), task.ID)
	fmt.Println(string(d.Payload), err)
	// Output:
	// 1 true email <nil>
	// {"to": "ann@example.com"} <nil>
}

func ExampleReader_TaskHistory() {
	e, r := greeted()
	defer e.Close()

	task, err := queue.EnqueueTask(e.Context(), e.Pool, Mail{"ann@example.com"}, queue.TaskOptions{})
	if err != nil {
		panic(err)
	}
	h, err := r.TaskHistory(e.Context(), task.ID, inspect.Page{})
	fmt.Println(len(h.Events), h.Events[0].Event, err)
	// Output: 1 enqueued <nil>
}

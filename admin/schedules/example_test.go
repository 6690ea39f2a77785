package schedules_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// example is a Temporal namespace of its own.
func example() (e *pgtest.Example, temporal client.Client) {
	e = pgtest.NewExampleTB()
	server := temporaltest.Shared(e)
	return e, server.Client(e, server.Namespace(e))
}

// Digest is a payload.
type Digest struct {
	List string `json:"list"`
}

// JobType implements queue.Payload.
func (Digest) JobType() string { return "digest" }

var weekly = schedules.Schedule{
	ID: "weekly-digest", OrgID: "acme", Payload: Digest{List: "customers"},
	Crons: []string{"0 6 * * MON"}, TimeZone: "Europe/Berlin",
}

// A schedule is created once. A program that starts with the schedules that it needs uses Replace.
func ExampleCreate() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()

	fmt.Println(schedules.Create(ctx, temporal, weekly))
	fmt.Println(errors.Is(schedules.Create(ctx, temporal, weekly), schedules.ErrExists))
	// Output:
	// <nil>
	// true
}

// A schedule that would never fire is refused, and none is left.
func ExampleCreate_never() {
	e, temporal := example()
	defer e.Close()

	never := weekly
	never.Crons = []string{"0 6 31 2 *"}
	fmt.Println(schedules.Create(e.Context(), temporal, never))
	// Output: schedule weekly-digest (0 6 31 2 *, Europe/Berlin) would never fire: no time to come matches it
}

// Replace may be called at each start of a program: the schedule is what the program says, and
// stays paused if it is.
func ExampleReplace() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()

	created, err := schedules.Replace(ctx, temporal, weekly, schedules.ReplaceOptions{})
	fmt.Println(created, err)
	hourly := weekly
	hourly.Crons, hourly.TimeZone, hourly.Every = nil, "", time.Hour
	created, err = schedules.Replace(ctx, temporal, hourly, schedules.ReplaceOptions{})
	fmt.Println(created, err)
	now, err := schedules.Describe(ctx, temporal, "weekly-digest")
	fmt.Println(now.When, err)
	// Output:
	// true <nil>
	// false <nil>
	// every 1h <nil>
}

func ExampleDescribe() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	if err := schedules.Create(ctx, temporal, weekly); err != nil {
		panic(err)
	}

	s, err := schedules.Describe(ctx, temporal, "weekly-digest")
	fmt.Println(s.Type, string(s.Payload), s.When, s.TimeZone, s.Overlap, s.NextFiring.Weekday(), err)
	_, err = schedules.Describe(ctx, temporal, "daily-digest")
	fmt.Println(errors.Is(err, schedules.ErrNotFound))
	// Output:
	// digest {"list":"customers"} 0 6 * * MON Europe/Berlin skip Monday <nil>
	// true
}

// What Temporal lists may be late by a moment.
func ExampleList() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	if err := schedules.Create(ctx, temporal, weekly); err != nil {
		panic(err)
	}

	all, err := schedules.List(ctx, temporal, "another organization")
	fmt.Println(len(all), err)
	// Output: 0 <nil>
}

// A paused schedule does not fire until it is resumed.
func ExamplePause() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	if err := schedules.Create(ctx, temporal, weekly); err != nil {
		panic(err)
	}

	fmt.Println(schedules.Pause(ctx, temporal, "weekly-digest", "the list is being cleaned"))
	fmt.Println(schedules.Pause(ctx, temporal, "weekly-digest", ""))
	s, err := schedules.Describe(ctx, temporal, "weekly-digest")
	fmt.Println(s.Paused, s.Note, err)
	// Output:
	// true <nil>
	// false <nil>
	// true the list is being cleaned <nil>
}

func ExampleResume() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	paused := weekly
	paused.Paused = true
	if err := schedules.Create(ctx, temporal, paused); err != nil {
		panic(err)
	}

	fmt.Println(schedules.Resume(ctx, temporal, "weekly-digest", "the list is clean"))
	s, err := schedules.Describe(ctx, temporal, "weekly-digest")
	fmt.Println(s.Paused, err)
	// Output:
	// true <nil>
	// false <nil>
}

// A schedule fires once now.
func ExampleTrigger() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	if err := schedules.Create(ctx, temporal, weekly); err != nil {
		panic(err)
	}

	fmt.Println(schedules.Trigger(ctx, temporal, "weekly-digest"))
	// Output: <nil>
}

func ExampleDelete() {
	e, temporal := example()
	defer e.Close()
	ctx := e.Context()
	if err := schedules.Create(ctx, temporal, weekly); err != nil {
		panic(err)
	}

	fmt.Println(schedules.Delete(ctx, temporal, "weekly-digest"))
	fmt.Println(errors.Is(schedules.Delete(ctx, temporal, "weekly-digest"), schedules.ErrNotFound))
	// Output:
	// <nil>
	// true
}

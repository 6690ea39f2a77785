package due_test

import (
	"context"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// room is the room that is left of each type.
type room map[string]int

func (room) Handles(string, int) bool { return true }

func (r room) Free(jobType string) bool { return r[jobType] > 0 }

func (r room) Reserve(jobType string, most int) int {
	n := min(most, r[jobType])
	r[jobType] -= n
	return n
}

func (r room) Return(jobType string, n int) { r[jobType] += n }

func (room) Open(string) bool { return true }

// The example of the package's page.
func ExamplePartitions_Divide() {
	found := func(org, slot string) due.Found {
		return due.Found{Place: due.Place{
			Key:    due.Key{Priority: 2, Org: org, Slot: slot},
			Cursor: due.Cursor{At: time.Now(), ID: "1"},
		}}
	}
	read := due.Recent{Found: []due.Found{found("acme", "mail"), found("acme", "report"), found("bell", "mail")}}
	partitions := due.New(due.Reader{
		Recent: func(context.Context, time.Duration, int, bool) (due.Recent, error) { return read, nil },
		Part:   func(context.Context, due.Key, int) (due.Part, error) { return due.Part{}, nil },
	})
	mayBegin := room{"mail": 1000, "report": 2}
	if _, err := partitions.Scan(context.Background(), true, mayBegin); err != nil {
		panic(err)
	}

	for lease := 1; lease <= 2; lease++ {
		shares := partitions.Divide(4, mayBegin)
		got := make([]due.Got, len(shares))
		for i, s := range shares {
			fmt.Println("lease", lease, "asks", s.Org, "for", s.Slot, s.Quota)
			got[i] = due.Got{Jobs: s.Quota, Last: s.Cursor}
			if s.Org == "bell" {
				got[i].Jobs = 1 // it has no more
			}
		}
		partitions.Took(shares, got)
	}
	// Output:
	// lease 1 asks acme for mail 1
	// lease 1 asks bell for mail 2
	// lease 1 asks acme for report 1
	// lease 2 asks acme for mail 3
	// lease 2 asks acme for report 1
}

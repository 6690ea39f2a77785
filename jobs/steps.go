package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// steps are those of one attempt at a job. What earlier attempts have kept is read when the first
// one is asked for, and not at all when there can be none.
type steps struct {
	running *engine.Running
	q       store.Querier
	job     store.Job
	// private encrypts results; nil: they are kept as they are.
	private *private

	// mu guards the rest: a handler may run steps side by side.
	mu     sync.Mutex
	loaded bool
	closed bool
	// kept are those that are kept, also by this attempt; bytes are their results'.
	kept  map[string]store.Step
	bytes int
	// asked are the names that this attempt has asked for, run those of them that were not kept.
	asked map[string]bool
	run   []string
}

// begin returns the step of that name as it is kept, or as it is to be kept.
func (s *steps) begin(ctx context.Context, name string) (store.Step, error) {
	if s == nil {
		return store.Step{}, ErrNoSteps
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.Step{}, ErrNoSteps
	}
	if err := s.load(ctx); err != nil {
		return store.Step{}, err
	}
	kept, there := s.kept[name]
	why := ""
	switch {
	case name == "" || len(name) > 64 || !store.ValidText(name):
		why = "its name must have 1 to 64 bytes, in UTF-8 and without U+0000"
	case s.asked[name]:
		why = "this attempt has asked for it before: give each step a name of its own"
	case !there && len(s.kept) >= models.MaxSteps:
		why = fmt.Sprintf("the job has kept %d steps: use a loop", len(s.kept))
	}
	if why != "" {
		return store.Step{}, WithCode(models.CodeStepInvalid, fmt.Errorf("%w: %.100q: %s", ErrStepInvalid, name, why))
	}
	s.asked[name] = true
	if !there {
		s.run = append(s.run, name)
		kept = store.Step{Name: name}
	}
	if !kept.Done {
		kept.Position = len(s.asked)
	}
	return kept, nil
}

// load reads what earlier attempts have kept.
func (s *steps) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	var found []store.Step
	if s.job.Awaited {
		err := store.Await(ctx, store.OutageLimit, func(ctx context.Context) (err error) {
			found, err = store.JobSteps(ctx, s.q, s.job.ID)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.kept, s.asked, s.loaded = map[string]store.Step{}, map[string]bool{}, true
	for _, f := range found {
		s.kept[f.Name], s.bytes = f, s.bytes+len(f.Result)
	}
	return nil
}

// fits says why a result of so many bytes cannot be kept.
func (s *steps) fits(name string, size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.bytes - len(s.kept[name].Result) + size
	switch {
	case size > models.MaxStepBytes:
		return fmt.Errorf("it has %d bytes and may have %d", size, models.MaxStepBytes)
	case all > models.MaxStepsBytes:
		return fmt.Errorf("with it the steps of the job have %d bytes, and may have %d", all, models.MaxStepsBytes)
	}
	return nil
}

// keep takes in that a step is kept.
func (s *steps) keep(before, now store.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[now.Name], s.bytes = now, s.bytes-len(before.Result)+len(now.Result)
}

// fail lets this attempt ask for a step again that failed with err, and returns err.
func (s *steps) fail(of store.Step, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, of.Name)
	s.run = slices.DeleteFunc(s.run, func(name string) bool { return name == of.Name })
	return err
}

// close refuses steps from now on: the handler has returned.
func (s *steps) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// unused are the steps that are kept and that this attempt has not asked for, and those that it has
// run itself, in words.
func (s *steps) unused() (unused, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.kept)) {
		if !s.asked[name] {
			names = append(names, fmt.Sprintf("%s (position %d, attempt %d)", name, s.kept[name].Position, s.kept[name].Attempt))
		}
	}
	return strings.Join(names, ", "), strings.Join(s.run, ", ")
}

package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictyaml"
)

// functionEntry is one type of the file that DAYBOOK_FUNCTIONS_FILE names.
type functionEntry struct {
	Type string `json:"type"`
	FunctionConfig

	// Workflow or Activity has a Temporal workflow or activity work the jobs, in place of a function:
	// its name, and what TemporalConfig says of it.
	Workflow         string        `json:"workflow"`
	Activity         string        `json:"activity"`
	Standalone       bool          `json:"standalone"`
	ActivityTimeout  time.Duration `json:"activity_timeout"`
	Heartbeat        time.Duration `json:"heartbeat"`
	ActivityAttempts int           `json:"activity_attempts"`
	TaskQueue        string        `json:"task_queue"`
	Pause            time.Duration `json:"pause"`
	RunTimeout       time.Duration `json:"run_timeout"`
	CancelGrace      time.Duration `json:"cancel_grace"`

	Owner              string        `json:"owner"`
	Attempts           int           `json:"attempts"`
	BaseDelay          time.Duration `json:"base_delay"`
	MaxDelay           time.Duration `json:"max_delay"`
	Parallel           int           `json:"parallel"`
	ParallelEverywhere int           `json:"parallel_everywhere"`
}

// functionsVariable names the file.
const functionsVariable = environmentPrefix + "FUNCTIONS_FILE"

// functionEntries reads a file in YAML or JSON.
func functionEntries(path string) ([]functionEntry, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var entries []functionEntry
	if err := strictyaml.Unmarshal(raw, &entries); err != nil {
		return nil, err
	}
	return entries, nil
}

// policy is the one that the file asks for.
func (e functionEntry) policy(owner string) (jobs.Policy, error) {
	p := FunctionPolicy(e.Timeout)
	p.Owner = cmp.Or(e.Owner, owner)
	p.MaxAttempts = cmp.Or(e.Attempts, p.MaxAttempts)
	p.Base, p.Cap, p.Parallel, p.ParallelEverywhere = e.BaseDelay, e.MaxDelay, e.Parallel, e.ParallelEverywhere
	switch {
	case p.MaxAttempts < 0 || p.Base < 0 || p.Cap < 0 || p.Parallel < 0 || p.ParallelEverywhere < 0:
		return p, errors.New("attempts, delays and numbers must not be negative: leave one out for its default")
	case p.MaxAttempts > models.MaxJobAttempts:
		return p, fmt.Errorf("attempts may be %d at most", models.MaxJobAttempts)
	}
	return p, nil
}

// functions registers the types of the file, if a file is named.
func (s *environment) functions(r *jobs.Registry) error {
	path := s.Environment[functionsVariable]
	if path == "" {
		return nil
	}
	entries, err := functionEntries(path)
	if err != nil {
		return fmt.Errorf("%s: %w", functionsVariable, err)
	}
	webhook, err := parse[WebhookConfig](s)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if err := s.function(r, e, webhook); err != nil {
			return fmt.Errorf("%s: entry %d, type %q: %w", functionsVariable, i+1, e.Type, err)
		}
	}
	if s.temporal != nil {
		s.beside("what belongs to Temporal workflows of jobs does not run", s.temporal.Run)
	}
	return nil
}

func (s *environment) function(r *jobs.Registry, e functionEntry, webhook WebhookConfig) error {
	switch {
	case !models.ValidJobType(e.Type):
		return errors.New("it can be the name of no type: a letter, and then letters, digits, _, ., : or -")
	case slices.Contains(r.Names(), e.Type):
		return errors.New("the type has a handler already")
	}
	policy, err := e.policy(s.Owner)
	if err != nil {
		return err
	}
	if e.Workflow != "" || e.Activity != "" {
		return s.workflow(r, e, policy)
	}
	if e.TaskQueue != "" || e.Pause != 0 || e.RunTimeout != 0 || e.CancelGrace != 0 || e.Standalone ||
		e.ActivityTimeout != 0 || e.Heartbeat != 0 || e.ActivityAttempts != 0 {
		return errors.New("task_queue, pause, run_timeout, cancel_grace, standalone, activity_timeout, heartbeat and " +
			"activity_attempts are for a workflow or an activity: name it by workflow or activity")
	}
	e.Secrets, e.AllowNetworks = s.secrets, webhook.AllowNetworks
	h, err := NewFunction(e.FunctionConfig)
	if err != nil {
		return err
	}
	s.onClose(h.Close)
	jobs.RegisterRaw(r, e.Type, policy, h.Handle)
	s.builtin.Types = append(s.builtin.Types, e.Type)
	return nil
}

// workflow registers a type that a Temporal workflow or activity works.
func (s *environment) workflow(r *jobs.Registry, e functionEntry, policy jobs.Policy) error {
	if e.URL != "" || e.Secret != "" || e.Callback != 0 || e.CallbackURL != "" {
		return errors.New("url, secret, callback and callback_url are for a function, and workflow and activity are for " +
			"Temporal: keep one of them")
	}
	h, err := newTemporal(TemporalConfig{
		Client: s.Temporal, Pool: s.Pool, Workflow: e.Workflow, Activity: e.Activity, TaskQueue: e.TaskQueue,
		Organizations: e.Organizations,
		Timeout:       e.Timeout, Pause: e.Pause, RunTimeout: e.RunTimeout, CancelGrace: e.CancelGrace,
		MaxResult:  e.MaxResult,
		Standalone: e.Standalone, ActivityTimeout: e.ActivityTimeout, Heartbeat: e.Heartbeat, ActivityAttempts: e.ActivityAttempts,
	})
	switch {
	case err != nil:
		return err
	case s.Temporal == nil:
		s.builtin.Missing[e.Type] = "a Temporal workflow or activity works the type, and this program has no Temporal " +
			"client: run daybook worker"
		return nil
	}
	jobs.RegisterRaw(r, e.Type, policy, h.Handle)
	s.builtin.Types = append(s.builtin.Types, e.Type)
	s.temporal = h
	return nil
}

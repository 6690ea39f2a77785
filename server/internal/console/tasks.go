package console

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
)

// tasks adds the pages of tasks.
func (c *console) tasks() {
	c.addToMenu(menuEntry{"Work", "Tasks", "tasks"})
	c.page("GET "+Root+"tasks", tokens.ScopeRead, c.taskList)
	c.page("GET "+Root+"tasks/{id}", tokens.ScopeRead, c.taskPage)
}

// wholeDatabase refuses a token of one organization: tasks belong to none.
func wholeDatabase(r *request) error {
	if r.Token.OrgID != nil {
		return fmt.Errorf("%w: tasks have no organization, and want a token for all organizations", errScope)
	}
	return nil
}

// taskStates are the choices of a filter of tasks.
func taskStates() []option {
	says := map[models.TaskState]string{
		models.TaskWaiting: "waiting for its time", models.TaskReady: "ready", models.TaskLeased: "leased",
		models.TaskStuck:  "stuck: needs a person",
		models.TaskFailed: "failed: has an error", models.TaskCompleted: "completed",
	}
	options := []option{{"", "any"}}
	for _, s := range models.TaskSearches() {
		options = append(options, option{string(s), says[s]})
	}
	return options
}

func (c *console) taskList(ctx context.Context, r *request) (*view, error) {
	if err := wholeDatabase(r); err != nil {
		return nil, err
	}
	form := filters{Action: Root + "tasks", Hidden: hiddenOrg(r), Fields: []field{
		{Name: "state", Label: "State", Options: taskStates()},
		{Name: "type", Label: "Type"},
		{Name: "since", Label: "Since", Placeholder: "24h, 7d, 2026-01-31T09:30"},
		{Name: "until", Label: "Until"},
	}}
	if set(r, "state", "type", "since", "until") {
		form.Clear = r.link("tasks")
	}
	form = r.filter(form)
	f := listing.TaskFilter{State: models.TaskState(value(r, "state")), Type: value(r, "type")}
	var err error
	if f.Since, err = timeOf(r, "since"); err != nil {
		return nil, err
	}
	if f.Until, err = timeOf(r, "until"); err != nil {
		return nil, err
	}
	cursor := r.FormValue("cursor")
	found, err := c.Listing.FindTasks(ctx, f, pageRows, cursor)
	if err != nil {
		return nil, err
	}
	for i := range found.Tasks {
		found.Tasks[i].LastError = redact.Text(found.Tasks[i].LastError)
	}
	return &view{Title: "Tasks", Template: "tasks", Nav: "tasks", Live: cursor == "", Data: map[string]any{
		"Filters": form, "Tasks": found.Tasks, "Searched": found.Searched, "Pager": pagerOf(r, found.Next),
		"Filtered": form.Clear != "",
	}}, nil
}

// taskStory says in words why a task is where it is.
func taskStory(d *listing.TaskDetail, now time.Time) story {
	var s story
	switch d.State {
	case models.TaskWaiting:
		s.Says = "It waits for its time, " + ago(now, d.ScheduledAt) + "."
	case models.TaskReady:
		s.Says = "It has been due for " + phrase.Duration(now.Sub(d.ScheduledAt)) + " and waits for a worker."
	case models.TaskLeased:
		s.Says = "A worker has it; its lease expires " + ago(now, *d.LeasedUntil) + " unless it is renewed."
	case models.TaskCompleted:
		s.Says = "It is completed."
		if d.Errors > 0 {
			s.Next = "An error was noted of it: whether the process behind it succeeded later, its own tables say."
		}
	case models.TaskUnreachable:
		s.Says = "It is open, and no worker will find it: its row of queues.open_task is missing."
		s.Todo = "Run `daybook audit`, which says what to do, or SELECT queues.rebuild_open_tasks()."
	default: // models.TaskStuck and models.TaskFailed are searched for, and are no state
	}
	if d.Stuck != "" {
		s.Next, s.Todo = "It needs a person: "+d.Stuck+".", "Read its last error and the worker's log at the time of its "+
			"leases. `daybook doctor` says whether workers of tasks run."
	}
	return s
}

func (c *console) taskPage(ctx context.Context, r *request) (*view, error) {
	if err := wholeDatabase(r); err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is no id of a task, which is a number", store.ErrTaskNotFound,
			clip(r.PathValue("id"), 50))
	}
	d, err := c.Listing.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	owners, err := store.Owners(ctx, c.Pool, "tasks", []string{d.Type})
	if err != nil {
		return nil, err
	}
	cursor := r.FormValue("cursor")
	history, err := c.Listing.TaskHistory(ctx, id, attemptsShown, cursor)
	if err != nil {
		return nil, err
	}
	for i := range history.Events {
		history.Events[i].Error = redact.Text(history.Events[i].Error)
	}
	return &view{
		Title: "Task " + strconv.FormatInt(id, 10), Template: "task", Nav: "tasks", Live: d.State != models.TaskCompleted &&
			cursor == "", Trail: []trail{{"Tasks", r.link("tasks")}},
		Data: map[string]any{
			"Task": d, "Owner": owners[d.Type], "Story": taskStory(&d, r.now), "Error": redact.Text(d.LastError),
			"Payload": redact.JSON(d.Type, d.Payload),
			"Events":  history.Events, "Pager": pagerOf(r, history.Next),
		},
	}, nil
}

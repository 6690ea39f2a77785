package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func (s *server) tasks() {
	operation(s, tokens.ScopeEnqueue, huma.Operation{
		OperationID: "enqueueTask", Method: http.MethodPost, Path: "/api/tasks/enqueue", Tags: []string{tagTasks},
		DefaultStatus: http.StatusCreated,
		Summary:       "Ask for a task", Description: "Every request makes a task. It wants a token for all " +
			"organizations, with the scope operate or with `task:` and the type among its types.",
		Metadata: map[string]any{exampleKey: `{"type": "db_function", "payload": {"task_type": "db_function", "db_function": "comms.send_email_supervisor"}}`},
	}, s.enqueueTask)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listTasks", Method: http.MethodGet, Path: "/api/tasks", Tags: []string{tagTasks},
		Summary:     "List and search tasks, the last enqueued one first",
		Description: "It wants a token for all organizations.",
	}, s.listTasks)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getTask", Method: http.MethodGet, Path: "/api/tasks/{id}", Tags: []string{tagTasks},
		Summary: "Get a task with its payload", Description: "It wants a token for all organizations.",
	}, s.getTask, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getTaskHistory", Method: http.MethodGet, Path: "/api/tasks/{id}/history", Tags: []string{tagTasks},
		Summary: "List the facts of a task, the newest first", Description: "It wants a token for all organizations.",
	}, s.getTaskHistory, http.StatusNotFound)
}

// wholeDatabase refuses a token of one organization; why says what has none.
func wholeDatabase(ctx context.Context, why string) error {
	if caller(ctx).OrgID != nil {
		return fmt.Errorf("%w: %s, and want a token for all organizations", errScope, why)
	}
	return nil
}

const tasksOfNone = "tasks have no organization"

type enqueueTaskInput struct {
	Body struct {
		Type        string         `json:"type" minLength:"1" maxLength:"63" pattern:"^[a-z][a-z0-9_]*$" doc:"db_function, email, sms, file_delete, or a type that the application has a processor for" example:"db_function"`
		Payload     answers.Object `json:"payload" doc:"What the task is about: 128 KB at most"`
		ScheduledAt time.Time      `json:"scheduledAt,omitzero" required:"false" doc:"When it is due; default now" example:"2024-01-15T10:30:00Z"`
	}
}

type enqueueTaskOutput struct {
	Body struct{ answers.EnqueuedTask }
}

func (s *server) enqueueTask(ctx context.Context, in *enqueueTaskInput) (*enqueueTaskOutput, error) {
	if err := wholeDatabase(ctx, tasksOfNone); err != nil {
		return nil, err
	}
	// A task calls functions of the database: a token that may enqueue any job may not for that
	// reason enqueue it.
	name := "task:" + in.Body.Type
	if t := caller(ctx).Token; len(t.Types) == 0 && !t.Allows(tokens.ScopeOperate) {
		return nil, fmt.Errorf("%w: tasks want a token with the scope operate, or one whose --types name %s", tokens.ErrType, name)
	}
	if err := s.mayEnqueue(ctx, name); err != nil {
		return nil, err
	}
	task, err := queue.EnqueueTask(ctx, s.pool, queue.RawTask{Type: in.Body.Type, Data: json.RawMessage(in.Body.Payload)},
		queue.TaskOptions{ScheduledAt: in.Body.ScheduledAt})
	if err != nil {
		return nil, err
	}
	out := &enqueueTaskOutput{}
	out.Body.ID = task.ID
	return out, nil
}

type listTasksInput struct {
	PageInput
	State string    `query:"state" enum:"waiting,ready,leased,stuck,failed,completed" doc:"stuck: open, and needs a person; failed: an error was noted of it, completed or not"`
	Type  string    `query:"type" maxLength:"63" doc:"Only of this type"`
	Since time.Time `query:"since" doc:"Only enqueued since; with state completed or failed: only completed or failed since"`
	Until time.Time `query:"until" doc:"Only enqueued before; with state completed or failed: only completed or failed before"`
}

type listTasksOutput struct {
	Body struct{ answers.TaskList }
}

func (s *server) listTasks(ctx context.Context, in *listTasksInput) (*listTasksOutput, error) {
	if err := wholeDatabase(ctx, tasksOfNone); err != nil {
		return nil, err
	}
	f := listing.TaskFilter{State: models.TaskState(in.State), Type: in.Type, Since: in.Since, Until: in.Until}
	page, err := s.Listing.Tasks(ctx, f, in.Limit, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &listTasksOutput{}
	out.Body.TaskList = answers.TaskListOf(&page)
	return out, nil
}

// TaskInput names one task.
type TaskInput struct {
	ID int64 `path:"id" minimum:"1"`
}

type taskOutput struct {
	Body struct{ answers.TaskDetail }
}

func (s *server) getTask(ctx context.Context, in *TaskInput) (*taskOutput, error) {
	if err := wholeDatabase(ctx, tasksOfNone); err != nil {
		return nil, err
	}
	d, err := s.Listing.Task(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := &taskOutput{}
	out.Body.TaskDetail = answers.TaskDetailOf(&d)
	return out, nil
}

type taskHistoryInput struct {
	TaskInput
	PageInput
}

type taskHistoryOutput struct {
	Body struct{ answers.TaskHistory }
}

func (s *server) getTaskHistory(ctx context.Context, in *taskHistoryInput) (*taskHistoryOutput, error) {
	if err := wholeDatabase(ctx, tasksOfNone); err != nil {
		return nil, err
	}
	h, err := s.Listing.TaskHistory(ctx, in.ID, in.Limit, in.Cursor)
	if err != nil {
		return nil, err
	}
	out := &taskHistoryOutput{}
	out.Body.TaskHistory = answers.TaskHistoryOf(&h)
	return out, nil
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/namedqueue"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// settingsOf returns settings as those of a queue.
func settingsOf(name string, q *answers.QueueSettings) store.NamedQueue {
	return store.NamedQueue{
		Name: name, Fleet: q.Fleet, MaxParallel: q.MaxParallel, PerProcess: q.PerProcess, Rate: q.Rate,
		RateSeconds: q.RateSeconds, RateBurst: q.RateBurst, Owner: q.Owner,
	}
}

// settingsGiven are the settings that are given, for the log of actions.
func settingsGiven(q *answers.QueueSettings) map[string]any {
	given := map[string]any{}
	for name, value := range map[string]any{
		"fleet": q.Fleet, "maxParallel": q.MaxParallel, "perProcess": q.PerProcess, "rate": q.Rate,
		"rateSeconds": q.RateSeconds, "rateBurst": q.RateBurst, "owner": q.Owner,
	} {
		if value != "" && value != 0 && value != 0.0 {
			given[name] = value
		}
	}
	return given
}

const allOrganizations = "It wants a token for all organizations."

func (s *server) queues() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listQueues", Method: http.MethodGet, Path: "/api/queues", Tags: []string{tagQueues},
		Summary: "List the named queues in the order of their names", Description: allOrganizations,
	}, s.listQueues)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getQueue", Method: http.MethodGet, Path: "/api/queues/{name}", Tags: []string{tagQueues},
		Summary: "Get a named queue", Description: allOrganizations,
	}, s.getQueue, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "setQueue", Method: http.MethodPut, Path: "/api/queues/{name}", Tags: []string{tagQueues},
		Summary: "Make a named queue, or give it these settings",
		Description: "A setting that is left out is at its default. A pause stays. Open jobs go to the fleet that is " +
			"named. The settings count until `POST /api/queues/{name}/release`, " +
			"also when a program asks for others at its start. " + allOrganizations,
		Metadata: map[string]any{
			actionKey:  "queues.set",
			exampleKey: `{"maxParallel": 10, "rate": 100, "rateSeconds": 60}`,
		},
	}, s.setQueue)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "pauseQueue", Method: http.MethodPost, Path: "/api/queues/{name}/pause", Tags: []string{tagQueues},
		Summary:     "Have nothing of a named queue begin until it is resumed",
		Description: "What has begun is finished. " + allOrganizations,
		Metadata:    map[string]any{actionKey: "queues.pause"},
	}, s.pauseQueue(true), http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "resumeQueue", Method: http.MethodPost, Path: "/api/queues/{name}/resume", Tags: []string{tagQueues},
		Summary: "End the pause of a named queue", Description: allOrganizations,
		Metadata: map[string]any{actionKey: "queues.resume"},
	}, s.pauseQueue(false), http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "releaseQueue", Method: http.MethodPost, Path: "/api/queues/{name}/release", Tags: []string{tagQueues},
		Summary: "Give the settings of a named queue back to its programs",
		Description: "What its programs have asked for last counts again, instead of what a person has set (setBy). " +
			"Where none has asked for any, the settings stay until one does. " + allOrganizations,
		Metadata: map[string]any{actionKey: "queues.release"},
	}, s.releaseQueue, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "deleteQueue", Method: http.MethodDelete, Path: "/api/queues/{name}", Tags: []string{tagQueues},
		DefaultStatus: http.StatusNoContent,
		Summary:       "Delete a named queue that has no open jobs", Description: allOrganizations,
		Metadata: map[string]any{actionKey: "queues.delete"},
	}, s.deleteQueue, http.StatusNotFound, http.StatusConflict)
}

// QueueInput names one named queue.
type QueueInput struct {
	Name string `path:"name" maxLength:"64" pattern:"^[A-Za-z][A-Za-z0-9_.:-]*$"`
}

type queueOutput struct{ Body answers.Queue }

// shown answers with a queue.
func shown(u store.NamedQueue, err error) (*queueOutput, error) {
	if err != nil {
		return nil, err
	}
	return &queueOutput{answers.QueueOf(&u)}, nil
}

type listQueuesInput struct {
	PageInput
	Fleet string `query:"fleet" maxLength:"63" doc:"Only the queues of this fleet"`
}

type listQueuesOutput struct {
	Body struct{ answers.QueueList }
}

func (s *server) listQueues(ctx context.Context, in *listQueuesInput) (*listQueuesOutput, error) {
	if err := wholeDatabase(ctx, "named queues are for all organizations"); err != nil {
		return nil, err
	}
	p := store.QueuesPage{Limit: in.Limit + 1}
	if in.Fleet != "" {
		p.Fleet = &in.Fleet
	}
	if err := in.decode(&p.After); err != nil {
		return nil, err
	}
	list, err := store.NamedQueues(ctx, s.pool, p)
	if err != nil {
		return nil, err
	}
	out := &listQueuesOutput{}
	list, out.Body.NextCursor = page(in.PageInput, list, func(u store.NamedQueue) any { return u.Name })
	out.Body.Queues = answers.List(list, answers.QueueOf)
	return out, nil
}

func (s *server) getQueue(ctx context.Context, in *QueueInput) (*queueOutput, error) {
	if err := wholeQueue(ctx, in.Name); err != nil {
		return nil, err
	}
	return shown(store.QueueOf(ctx, s.pool, in.Name))
}

type setQueueInput struct {
	QueueInput
	Body answers.QueueSettings
}

func (s *server) setQueue(ctx context.Context, in *setQueueInput) (*queueOutput, error) {
	if err := wholeQueue(ctx, in.Name); err != nil {
		return nil, err
	}
	actions.About(ctx, "", "", settingsGiven(&in.Body))
	u, _, err := namedqueue.Put(ctx, s.pool, settingsOf(in.Name, &in.Body))
	return shown(u, err)
}

func (s *server) pauseQueue(paused bool) func(context.Context, *QueueInput) (*queueOutput, error) {
	return func(ctx context.Context, in *QueueInput) (*queueOutput, error) {
		if err := wholeQueue(ctx, in.Name); err != nil {
			return nil, err
		}
		now, _, err := namedqueue.Pause(ctx, s.pool, in.Name, paused)
		return shown(now, err)
	}
}

func (s *server) releaseQueue(ctx context.Context, in *QueueInput) (*queueOutput, error) {
	if err := wholeQueue(ctx, in.Name); err != nil {
		return nil, err
	}
	now, _, err := namedqueue.Release(ctx, s.pool, in.Name)
	return shown(now, err)
}

func (s *server) deleteQueue(ctx context.Context, in *QueueInput) (*struct{}, error) {
	if err := wholeQueue(ctx, in.Name); err != nil {
		return nil, err
	}
	return nil, namedqueue.Delete(ctx, s.pool, in.Name)
}

// wholeQueue refuses a token of one organization, and says in the log of actions which queue was
// meant.
func wholeQueue(ctx context.Context, name string) error {
	actions.About(ctx, "", name, nil)
	return wholeDatabase(ctx, "named queues are for all organizations")
}

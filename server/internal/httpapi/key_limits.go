package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/keylimit"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// mostKeys is how many keys of a limit are listed.
const mostKeys = 50

func (s *server) keyLimits() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listLimits", Method: http.MethodGet, Path: "/api/limits", Tags: []string{tagQueues},
		Summary:     "List the limits by key, in the order of the types, and then of the named queues",
		Description: allOrganizations,
	}, s.listLimits)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listLimitedKeys", Method: http.MethodGet, Path: "/api/limits/types/{type}/keys", Tags: []string{tagQueues},
		Summary: "List the 50 keys of a type that most jobs wait for", Description: allOrganizations,
	}, func(ctx context.Context, in *LimitInput) (*listLimitedKeysOutput, error) {
		return s.listLimitedKeys(ctx, store.LimitScope{Type: in.Type})
	}, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listQueueLimitedKeys", Method: http.MethodGet, Path: "/api/limits/queues/{name}/keys",
		Tags:    []string{tagQueues},
		Summary: "List the 50 keys of a named queue that most jobs wait for", Description: allOrganizations,
	}, func(ctx context.Context, in *QueueInput) (*listLimitedKeysOutput, error) {
		return s.listLimitedKeys(ctx, store.LimitScope{Queue: in.Name})
	}, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "setLimit", Method: http.MethodPut, Path: "/api/limits/types/{type}", Tags: []string{tagQueues},
		Summary: "Limit the jobs of a type by key",
		Description: "Without parallel and rate the limit goes: a worker sets that of the type's policy again when it " +
			"starts. " + allOrganizations,
		Metadata: map[string]any{
			actionKey: "limits.set", exampleKey: `{"by": "payload.account_id", "parallel": 2}`,
		},
	}, func(ctx context.Context, in *setLimitInput) (*setLimitOutput, error) {
		return s.setLimit(ctx, store.LimitScope{Type: in.Type}, &in.Body)
	})
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "setQueueLimit", Method: http.MethodPut, Path: "/api/limits/queues/{name}", Tags: []string{tagQueues},
		Summary: "Limit the jobs of a named queue by key, whatever their types",
		Description: "A job to which it gives a key has this limit, and not its type's. Without parallel and rate the limit " +
			"goes: a program that declares one for the queue sets it again when it starts. " + allOrganizations,
		Metadata: map[string]any{
			actionKey: "limits.set", exampleKey: `{"by": "payload.account_id", "parallel": 2}`,
		},
	}, func(ctx context.Context, in *setQueueLimitInput) (*setLimitOutput, error) {
		return s.setLimit(ctx, store.LimitScope{Queue: in.Name}, &in.Body)
	}, http.StatusNotFound)
}

// LimitInput names a type of background jobs.
type LimitInput struct {
	Type string `path:"type" maxLength:"64" pattern:"^[A-Za-z][A-Za-z0-9_.:-]*$"`
}

type listLimitsOutput struct {
	Body struct {
		Limits []answers.KeyLimit `json:"limits"`
	}
}

func (s *server) listLimits(ctx context.Context, _ *struct{}) (*listLimitsOutput, error) {
	if err := wholeDatabase(ctx, limitsForAll); err != nil {
		return nil, err
	}
	list, err := store.KeyLimits(ctx, s.pool)
	out := &listLimitsOutput{}
	out.Body.Limits = answers.List(list, answers.KeyLimitOf)
	return out, err
}

const limitsForAll = "limits are for all organizations"

type listLimitedKeysOutput struct {
	Body struct {
		Keys []answers.LimitedKey `json:"keys"`
	}
}

func (s *server) listLimitedKeys(ctx context.Context, of store.LimitScope) (*listLimitedKeysOutput, error) {
	if err := wholeDatabase(ctx, limitsForAll); err != nil {
		return nil, err
	}
	list, err := store.LimitedKeys(ctx, s.pool, of, mostKeys)
	out := &listLimitedKeysOutput{}
	out.Body.Keys = answers.List(list, answers.LimitedKeyOf)
	return out, err
}

type setLimitInput struct {
	LimitInput
	Body answers.LimitSettings
}

type setQueueLimitInput struct {
	QueueInput
	Body answers.LimitSettings
}

type setLimitOutput struct {
	Body struct {
		answers.LimitScope
		Changed bool `json:"changed" doc:"false: the limit was so already"`
	}
}

func (s *server) setLimit(ctx context.Context, of store.LimitScope, b *answers.LimitSettings) (*setLimitOutput, error) {
	actions.About(ctx, "", of.String(), map[string]any{
		"by": b.By, "parallel": b.Parallel, "rate": b.Rate, "rateSeconds": b.RateSeconds,
	})
	if err := wholeDatabase(ctx, limitsForAll); err != nil {
		return nil, err
	}
	changed, err := keylimit.Set(ctx, s.pool, store.KeyLimit{
		LimitScope: of, By: b.By, Parallel: b.Parallel, Rate: b.Rate, RateSeconds: b.RateSeconds,
	})
	out := &setLimitOutput{}
	out.Body.LimitScope, out.Body.Changed = answers.LimitScope(of), changed
	return out, err
}

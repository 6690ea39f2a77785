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
		Summary: "List the limits by key, in the order of the types", Description: allOrganizations,
	}, s.listLimits)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listLimitedKeys", Method: http.MethodGet, Path: "/api/limits/{type}/keys", Tags: []string{tagQueues},
		Summary: "List the 50 keys of a type that most jobs wait for", Description: allOrganizations,
	}, s.listLimitedKeys, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "setLimit", Method: http.MethodPut, Path: "/api/limits/{type}", Tags: []string{tagQueues},
		Summary: "Limit the jobs of a type by key",
		Description: "Without parallel and rate the limit goes: a worker sets that of the type's policy again when it " +
			"starts. " + allOrganizations,
		Metadata: map[string]any{
			actionKey: "limits.set", exampleKey: `{"by": "payload.account_id", "parallel": 2}`,
		},
	}, s.setLimit)
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

func (s *server) listLimitedKeys(ctx context.Context, in *LimitInput) (*listLimitedKeysOutput, error) {
	if err := wholeDatabase(ctx, limitsForAll); err != nil {
		return nil, err
	}
	list, err := store.LimitedKeys(ctx, s.pool, in.Type, mostKeys)
	out := &listLimitedKeysOutput{}
	out.Body.Keys = answers.List(list, answers.LimitedKeyOf)
	return out, err
}

type setLimitInput struct {
	LimitInput
	Body answers.LimitSettings
}

type setLimitOutput struct {
	Body struct {
		Type    string `json:"type"`
		Changed bool   `json:"changed" doc:"false: the limit was so already"`
	}
}

func (s *server) setLimit(ctx context.Context, in *setLimitInput) (*setLimitOutput, error) {
	b := &in.Body
	actions.About(ctx, "", in.Type, map[string]any{
		"by": b.By, "parallel": b.Parallel, "rate": b.Rate, "rateSeconds": b.RateSeconds,
	})
	if err := wholeDatabase(ctx, limitsForAll); err != nil {
		return nil, err
	}
	changed, err := keylimit.Set(ctx, s.pool, store.KeyLimit{
		Type: in.Type, By: b.By, Parallel: b.Parallel, Rate: b.Rate, RateSeconds: b.RateSeconds,
	})
	out := &setLimitOutput{}
	out.Body.Type, out.Body.Changed = in.Type, changed
	return out, err
}

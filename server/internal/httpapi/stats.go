package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func (s *server) stats() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getStats", Method: http.MethodGet, Path: "/api/stats", Tags: []string{tagServer},
		Summary: "Count the jobs of every queue",
	}, s.getStats, http.StatusNotFound)
}

type statsInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
}

type statsOutput struct {
	Body struct {
		Queues []answers.QueueStats `json:"queues" doc:"Every queue"`
		Jobs   []answers.TypeStats  `json:"jobs" doc:"Background jobs by type and state"`
	}
}

func (s *server) getStats(ctx context.Context, in *statsInput) (*statsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	queues, err := store.Status(ctx, s.pool, org)
	if err != nil {
		return nil, err
	}
	stats, err := s.Listing.JobStats(ctx, org)
	if err != nil {
		return nil, err
	}
	out := &statsOutput{}
	out.Body.Queues, out.Body.Jobs = answers.List(queues, answers.QueueStatsOf), answers.List(stats, answers.TypeStatsOf)
	return out, nil
}

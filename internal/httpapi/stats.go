package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/store"
)

func (s *server) stats() {
	operation(s, store.ScopeRead, huma.Operation{
		OperationID: "getStats", Method: http.MethodGet, Path: "/api/stats", Tags: []string{tagServer},
		Summary: "Count the jobs of both queues",
	}, s.getStats, http.StatusNotFound)
}

// TypeStats counts the background jobs of a type in a state.
type TypeStats struct {
	Type            string    `json:"type"`
	State           string    `json:"state" enum:"pending,leased,completed,failed,cancelled"`
	Count           int64     `json:"count"`
	Oldest          time.Time `json:"oldest" doc:"When the first of them was enqueued"`
	Newest          time.Time `json:"newest"`
	AverageAttempts float64   `json:"averageAttempts"`
}

func typeStats(s *store.JobStat) TypeStats {
	return TypeStats{Type: s.Type, State: string(s.State), Count: s.Count, Oldest: s.Oldest, Newest: s.Newest, AverageAttempts: s.AverageAttempts}
}

// AccountingStats is how the accounting queue stands.
type AccountingStats struct {
	At             time.Time        `json:"at" doc:"The database's clock"`
	Counts         map[string]int64 `json:"counts" doc:"Jobs by state"`
	Due            int64            `json:"due" doc:"Pending jobs whose time has come"`
	StaleLeases    int64            `json:"staleLeases" doc:"Leases that have expired: their holder has not renewed them for 10 seconds"`
	FailedByCode   map[string]int64 `json:"failedByCode" doc:"Failed jobs by their last error's code"`
	OldestSeconds  float64          `json:"oldestPendingSeconds" doc:"How long ago the pending job that was asked for first was first due"`
	OldestDocument string           `json:"oldestPendingDocumentId,omitempty"`
}

type statsInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
}

type statsOutput struct {
	Body struct {
		Accounting AccountingStats `json:"accounting"`
		Jobs       []TypeStats     `json:"jobs" doc:"Background jobs by type and state"`
	}
}

func (s *server) getStats(ctx context.Context, in *statsInput) (*statsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	a, err := store.AccountingStatus(ctx, s.pool, org)
	if err != nil {
		return nil, err
	}
	stats, err := s.Listing.JobStats(ctx, org)
	if err != nil {
		return nil, err
	}
	out := &statsOutput{}
	out.Body.Jobs = convert(stats, typeStats)
	out.Body.Accounting = AccountingStats{At: a.At, Counts: named(a.Counts), Due: a.Due, StaleLeases: a.StaleLeases, FailedByCode: named(a.FailedByCode)}
	if o := a.OldestPending; o != nil {
		out.Body.Accounting.OldestSeconds, out.Body.Accounting.OldestDocument = o.AgeSeconds, o.DocumentID
	}
	return out, nil
}

// named makes plain names of a map's keys.
func named[K ~string](counts map[K]int64) map[string]int64 {
	out := make(map[string]int64, len(counts))
	for key, n := range counts {
		out[string(key)] = n
	}
	return out
}

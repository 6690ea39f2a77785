package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func (s *server) stats() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getStats", Method: http.MethodGet, Path: "/api/stats", Tags: []string{tagServer},
		Summary: "Count the jobs of every queue",
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
	Estimated       bool      `json:"estimated" doc:"All of this is known from a sample: of jobs of all organizations that completed or were cancelled, where the table is large"`
}

func typeStats(s *listing.JobStat) TypeStats {
	return TypeStats{Type: s.Type, State: string(s.State), Count: s.Count, Oldest: s.Oldest, Newest: s.Newest, AverageAttempts: s.AverageAttempts, Estimated: s.Estimated}
}

// QueueStats is how a queue stands.
type QueueStats struct {
	Kind           string           `json:"kind" doc:"The queue's: accounting, jobs or tasks"`
	At             time.Time        `json:"at" doc:"The database's clock"`
	Counts         map[string]int64 `json:"counts" doc:"Jobs, or tasks, by state. A task that was completed after an error counts as failed"`
	Estimated      []string         `json:"estimated" doc:"States whose counts are estimates: completed and cancelled, of all organizations, where the table is large"`
	Due            int64            `json:"due" doc:"Pending jobs whose time has come"`
	Waiting        int64            `json:"waiting" doc:"Pending jobs that wait for their turn in a sequence or for other jobs; they are not due"`
	StaleLeases    int64            `json:"staleLeases" doc:"Leases that have expired: their holder has not renewed them for 10 seconds, those of tasks for 5 minutes"`
	FailedByCode   map[string]int64 `json:"failedByCode" doc:"Failed jobs by their last error's code"`
	OldestSeconds  float64          `json:"oldestPendingSeconds" doc:"How long ago the pending job that was asked for first was first due"`
	OldestJob      string           `json:"oldestPendingJobId,omitempty"`
	OldestDocument string           `json:"oldestPendingDocumentId,omitempty" doc:"Of accounting jobs"`
	OldestType     string           `json:"oldestPendingType,omitempty" doc:"Of jobs and tasks"`
}

func queueStats(s *store.QueueStatus) QueueStats {
	out := QueueStats{Kind: s.Kind, At: s.At, Counts: named(s.Counts), Estimated: store.Texts(s.Estimated), Due: s.Due, Waiting: s.Waiting, StaleLeases: s.StaleLeases, FailedByCode: named(s.FailedByCode)}
	if o := s.OldestPending; o != nil {
		out.OldestSeconds, out.OldestJob, out.OldestDocument, out.OldestType = o.AgeSeconds, o.JobID, o.DocumentID, o.Type
	}
	return out
}

type statsInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
}

type statsOutput struct {
	Body struct {
		Queues []QueueStats `json:"queues" doc:"Every queue"`
		Jobs   []TypeStats  `json:"jobs" doc:"Background jobs by type and state"`
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
	out.Body.Queues, out.Body.Jobs = convert(queues, queueStats), convert(stats, typeStats)
	return out, nil
}

// named converts a map's keys to plain strings.
func named[K ~string](counts map[K]int64) map[string]int64 {
	out := make(map[string]int64, len(counts))
	for key, n := range counts {
		out[string(key)] = n
	}
	return out
}

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

const (
	// bulkInline is how long a request waits for its bulk operation; what is left then goes on in the
	// background.
	bulkInline = 10 * time.Second
	// bulkIdle is how long no process has worked on an operation that a server resumes, bulkEvery the
	// pause between two searches for such operations.
	bulkIdle  = 15 * time.Second
	bulkEvery = 10 * time.Second
)

func (s *server) bulk() {
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "getBulkOperation", Method: http.MethodGet, Path: "/api/bulk-operations/{id}", Tags: []string{tagJobs},
		Summary: "See how far a request for many jobs has come", Description: "Finished ones are kept for a month.",
	}, s.getBulkOperation, http.StatusNotFound)
}

type bulkOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     answers.BulkOperation
}

// runBulk works an operation that was begun, and answers with its result. After bulkInline it
// answers with status 202 and how far the operation has come, and the server goes on with it.
func (s *server) runBulk(ctx context.Context, op models.BulkOperation, dryRun bool, err error) (*bulkOutput, error) {
	if err != nil || dryRun {
		return &bulkOutput{Status: http.StatusOK, Body: answers.BulkOperationOf(&op, dryRun)}, err
	}
	within, cancel := context.WithTimeout(ctx, bulkInline)
	defer cancel()
	if err := store.RunBulk(within, s.pool, op.ID); err != nil {
		// Its time is over, the caller has gone, or the database is unavailable: the rest is done, and
		// counted, all the same.
		s.goOnWithBulk(ctx, op.ID)
	}
	now, err := s.Listing.BulkOperation(context.WithoutCancel(ctx), "", op.ID)
	if err != nil {
		return nil, fmt.Errorf("the bulk operation %s goes on; how far it has come could not be read: %w", op.ID, err)
	}
	out := &bulkOutput{Status: http.StatusOK, Body: answers.BulkOperationOf(&now, false)}
	if now.FinishedAt == nil {
		out.Status, out.Location = http.StatusAccepted, "/api/bulk-operations/"+op.ID
	}
	return out, nil
}

// goOnWithBulk works an operation until it is finished or the server stops.
func (s *server) goOnWithBulk(ctx context.Context, id string) {
	serving, ok := ctx.Value(servingKey{}).(context.Context)
	if !ok {
		return // a server that is not Serve's: ResumeBulk goes on
	}
	go func() {
		if err := store.RunBulk(serving, s.pool, id); err != nil && serving.Err() == nil {
			s.log.Warn("a bulk operation stopped; it is gone on with later", "operation", id, "error", err)
		}
	}()
}

// ResumeBulk goes on with bulk operations that another process has left, until ctx ends.
func ResumeBulk(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) {
	ticker := time.NewTicker(bulkEvery)
	defer ticker.Stop()
	for {
		ids, err := store.OpenBulkOperations(ctx, pool, bulkIdle)
		for _, id := range ids {
			log.Info("going on with a bulk operation", "operation", id)
			err = errors.Join(err, store.RunBulk(ctx, pool, id))
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("bulk operations are gone on with later", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *server) getBulkOperation(ctx context.Context, in *JobInput) (*bulkOutput, error) {
	op, err := s.Listing.BulkOperation(ctx, answers.Text(caller(ctx).OrgID), in.ID)
	if err != nil {
		return nil, err
	}
	return &bulkOutput{Status: http.StatusOK, Body: answers.BulkOperationOf(&op, false)}, nil
}

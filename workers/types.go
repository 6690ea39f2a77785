package workers

import (
	"context"
	"log/slog"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// typesOf are the types of a registry of jobs, and their aliases, as they are put on record.
func typesOf(r *jobs.Registry) (types []store.TypeOnRecord) {
	for _, registration := range r.Registrations() {
		p := registration.Policy
		t := store.TypeOnRecord{
			Type: registration.Type, Owner: p.Owner, MaxAttempts: p.MaxAttempts, Timeout: p.Timeout, Parallel: p.Parallel,
			Bulk: registration.Bulk, Secrets: p.Secrets, Encrypts: len(registration.Encrypted) > 0,
		}
		types = append(types, t)
		for _, alias := range p.Aliases {
			other := t
			other.Type, other.AliasOf = alias, t.Type
			types = append(types, other)
		}
	}
	return types
}

// limitsOf are the limits by key of the types of a registry, and of their aliases; those without one
// have the zero limit.
func limitsOf(r *jobs.Registry) (limits []store.KeyLimit) {
	for _, registration := range r.Registrations() {
		p := registration.Policy
		for _, name := range append([]string{registration.Type}, p.Aliases...) {
			limits = append(limits, store.KeyLimit{
				LimitScope: store.LimitScope{Type: name}, By: p.Limit.By, Parallel: p.Limit.Parallel, Rate: p.Limit.Rate,
				RateSeconds: p.Limit.Per.Seconds(),
			})
		}
	}
	return limits
}

// typesOfTasks are those of a registry of tasks.
func typesOfTasks(r *tasks.Registry) (types []store.TypeOnRecord) {
	for _, registration := range r.Registrations() {
		p := registration.Policy
		types = append(types, store.TypeOnRecord{
			Type: registration.Type, Owner: p.Owner, Timeout: p.Timeout,
			Parallel: p.Parallel,
		})
	}
	return types
}

// accountingType is the one type of accounting jobs.
func accountingType(owner string) []store.TypeOnRecord {
	return []store.TypeOnRecord{{Owner: owner, MaxAttempts: models.MaxAttempts, Bulk: true}}
}

// typeNoter puts types on record: a store or a queue of tasks.
type typeNoter interface {
	NoteTypes(ctx context.Context, worker string, types []store.TypeOnRecord) error
}

// noteTypes puts a worker's types on record. The worker works without: what fails is logged.
func noteTypes(ctx context.Context, s typeNoter, worker string, types []store.TypeOnRecord, log *slog.Logger) {
	if err := s.NoteTypes(ctx, processName(worker), types); err != nil && ctx.Err() == nil {
		log.Warn("the worker's types and their owners could not be put on record; trying again in a minute", "error", err)
	}
}

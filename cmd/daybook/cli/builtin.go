package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

// BuiltinJobs registers the built-in job types that the environment configures. Without a Temporal
// client, those that a workflow works are left out. Close what it returns.
func (a *App) BuiltinJobs(pool *pgxpool.Pool, temporal client.Client) (*jobs.Registry, *handlers.Builtin, error) {
	keys, err := a.Encryption()
	if err != nil {
		return nil, nil, err
	}
	registry := jobs.NewRegistry()
	if keys != nil {
		registry.Encrypt(keys)
	}
	builtin, err := handlers.Register(registry, handlers.Config{Pool: pool, Temporal: temporal})
	if err != nil {
		return nil, nil, Usagef("%v", err)
	}
	a.Log.Debug("job types", "worked", builtin.Types)
	return registry, builtin, nil
}

// builtinPayloads are the payloads of the built-in types.
var builtinPayloads = []queue.Payload{
	handlers.Webhook{},
	handlers.Email{},
	handlers.Report{},
	handlers.Cleanup{},
	handlers.DBFunction{},
	handlers.SMS{},
	handlers.FileDelete{},
	handlers.AirtableSync{},
	handlers.Notification{},
	handlers.PlaidEnrichment{},
}

// NoteType tells of a type that is not built in, unless a worker that lives has a handler for it,
// as far as the database is named and says so.
func (a *App) NoteType(ctx context.Context, jobType, queue string) {
	a.noteType(ctx, jobType, builtinTypes(), "Its jobs wait for a worker of yours that has a handler for it; when no "+
		"worker has had one for five minutes, those that are due are dead letters (HANDLER_MISSING), until one starts.",
		func(pool *pgxpool.Pool) (bool, error) { return store.HasHandler(ctx, pool, jobType, queue) })
}

// NoteTaskType is NoteType for tasks.
func (a *App) NoteTaskType(ctx context.Context, taskType string) {
	a.noteType(ctx, taskType, builtinTaskTypes, "Its tasks wait for a worker of yours that has a processor for it; "+
		"queues.stuck_tasks lists those that have been due for five minutes.",
		func(pool *pgxpool.Pool) (bool, error) { return store.HasProcessor(ctx, pool, taskType) })
}

func (a *App) noteType(ctx context.Context, name string, builtin []string, rest string,
	works func(*pgxpool.Pool) (bool, error),
) {
	if slices.Contains(builtin, name) {
		return
	}
	if pool, err := a.Pool(ctx, 1); err == nil {
		defer ClosePool(pool)
		if is, _ := works(pool); is {
			return
		}
	}
	near := nearest(name, builtin)
	a.Say("Note: %s is none of Daybook's own types%s %s", name, cmp.Or(didYouMean(near[:min(1, len(near))]), "."), rest)
}

// builtinTypes are the names of Daybook's own types.
func builtinTypes() []string {
	names := slices.Clone(handlers.WebhookPolicy().Aliases)
	for _, p := range builtinPayloads {
		names = append(names, p.JobType())
	}
	return names
}

// builtinTaskTypes are those of them that tasks can have.
var builtinTaskTypes = []string{
	tasks.DBFunction, handlers.Email{}.JobType(), handlers.SMS{}.JobType(), handlers.FileDelete{}.JobType(),
}

// CheckBuiltinType checks the payload of a built-in type. It reports false for every other type.
func CheckBuiltinType(jobType string, raw json.RawMessage) (builtin bool, err error) {
	if jobType == handlers.WebhookPolicy().Aliases[0] {
		jobType = handlers.Webhook{}.JobType()
	}
	for _, p := range builtinPayloads {
		if p.JobType() != jobType {
			continue
		}
		schema, err := payload.SchemaFor(reflect.TypeOf(p))
		if err == nil {
			err = schema.Validate(raw)
		}
		if err == nil {
			err = checkTemplate(jobType, raw)
		}
		return true, err
	}
	return false, nil
}

// checkTemplate tries the template of a mail. Without the directory of the worker's templates it
// tries none: only the worker knows them.
func checkTemplate(jobType string, raw json.RawMessage) error {
	dir := os.Getenv(MailTemplatesVariable)
	if dir == "" {
		return nil
	}
	known, ok := knownTemplates.Load(dir)
	if !ok {
		templates, err := OpenTemplates(dir)
		if err != nil {
			return err
		}
		known, _ = knownTemplates.LoadOrStore(dir, templates)
	}
	if err := known.(*handlers.MailTemplates).CheckPayload(jobType, raw); err != nil {
		return &payload.Error{Code: models.CodePayloadInvalid, Message: err.Error()}
	}
	return nil
}

// knownTemplates are the templates by their directory: they are read once, as a worker reads them.
var knownTemplates sync.Map

// CheckBuiltinPayload checks payloads for the HTTP API, also of types that this process does not
// work.
func CheckBuiltinPayload(jobType string, raw json.RawMessage) error {
	if encryption.KeyOf(raw) != "" {
		return nil // its worker checks it
	}
	_, err := CheckBuiltinType(jobType, raw)
	return err
}

// MailTemplatesVariable names the directory of templates for mail.
const MailTemplatesVariable = "DAYBOOK_MAIL_TEMPLATES"

// OpenTemplates reads the templates of a directory, beside those that come with Daybook.
func OpenTemplates(dir string) (*handlers.MailTemplates, error) {
	all, err := handlers.OpenMailTemplates(cmp.Or(dir, os.Getenv(MailTemplatesVariable)))
	if err != nil {
		return nil, Usagef("%v", err)
	}
	return all, nil
}

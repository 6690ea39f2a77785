package work

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
	"github.com/daybook-dev/daybook/queue"
)

func jobsEnqueueCommand(a *cli.App) *cobra.Command {
	var org, payload, runAt, priority string
	var links []string
	var delay time.Duration
	var o queue.JobOptions
	var callback queue.CallbackOptions
	command := &cobra.Command{
		Use:   "enqueue TYPE --org ORG [--payload JSON]",
		Short: "Enqueue a job",
		Long: "Enqueues a job. The payload of one of Daybook's own types is checked against the type's schema\n" +
			"(https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md). The payload of any other type is checked by its worker, which knows the schema.",
		Example: "  daybook jobs enqueue webhook --org acme --payload '{\"url\": \"https://example.com/hook\"}' --key order-17-paid\n" +
			"  daybook jobs enqueue report --org acme --payload @report.json --run-at 2026-04-01T06:00:00Z",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			raw, err := readPayload(a, payload)
			if err != nil {
				return err
			}
			if o.Priority, err = cli.ParsePriority(priority); err != nil {
				return err
			}
			if c.Flags().Changed("max-attempts") && (o.MaxAttempts < 1 || o.MaxAttempts > models.MaxJobAttempts) {
				return cli.Usagef("--max-attempts %d: want 1 to %d", o.MaxAttempts, models.MaxJobAttempts)
			}
			if o.RunAt, err = parseDue("--run-at", runAt, delay); err != nil {
				return err
			}
			if o.Debounce.Key == "" {
				if err := unusedDebounce(c); err != nil {
					return err
				}
				o.Debounce = queue.Debounce{}
			}
			for _, text := range links {
				l, err := cli.ParseLink(text)
				if err != nil {
					return err
				}
				o.Links = append(o.Links, queue.Link{Kind: l.Kind, ID: l.ID})
			}
			if o.Encryption, err = a.Encryption(); err != nil {
				return err
			}
			job := queue.RawPayload{Type: args[0], Data: raw}
			if err := queue.CheckJob(org, job, o); err != nil {
				return err
			}
			known := o.SkipValidation
			if !known {
				if known, err = cli.CheckBuiltinType(job.Type, raw); err != nil {
					return err
				}
			}
			db, err := a.Open(c.Context(), 1)
			if err != nil {
				return err
			}
			defer db.Close()
			if o.RunAt, err = db.DueIn(c.Context(), delay, o.RunAt); err != nil {
				return err
			}
			var done queue.EnqueuedJobWithCallback
			if c.Flags().Changed("callback") || c.Flags().Changed("callback-within") {
				done, err = queue.EnqueueJobWithCallback(c.Context(), db.Pool, org, job, callback, o)
			} else {
				done.EnqueuedJob, err = queue.EnqueueJob(c.Context(), db.Pool, org, job, o)
			}
			if err != nil {
				return err
			}
			if !known && !done.Duplicate {
				a.NoteType(c.Context(), job.Type, o.Queue)
			}
			return emitEnqueued(a, &done)
		},
	}
	flags := command.Flags()
	flags.StringVar(&org, "org", "", "the organization")
	flags.StringVar(&payload, "payload", "{}", "the payload, a JSON object; @FILE reads a file, @- standard input")
	flags.StringVar(&o.IdempotencyKey, "key", "",
		"the idempotency key: the same key with the same type and payload leads to the first job")
	flags.StringVar(&runAt, "run-at", "", "when it is due, as RFC 3339 (default now)")
	flags.DurationVar(&delay, "delay", 0, "until it is due, such as 10m (default at once)")
	flags.StringVar(&priority, "priority", "normal", "high, normal or low")
	flags.IntVar(&o.MaxAttempts, "max-attempts", 0,
		"after how many attempts it is a dead letter (default the policy of the type's handler)")
	flags.IntVar(&o.MinVersion, "min-version", 0,
		"the lowest version of the type's handler that may work it: workers with an older one leave it alone (default any)")
	flags.StringArrayVar(&links, "link", nil, "what it is about, such as order=17; may be repeated")
	flags.BoolVar(&o.Unique, "unique", false, "have no second one of the same type and payload while one waits or runs")
	flags.StringVar(&o.Queue, "queue", "", "the named queue (default the queue default)")
	flags.StringVar(&o.Sequence, "sequence", "", "work it after the earlier jobs of the organization with this key")
	flags.StringVar(&o.LimitKey, "limit-key", "",
		"what it shares the limit of its queue or its type with, such as a customer's account")
	flags.StringArrayVar(&o.After, "after", nil, "the id of a job that must be completed before; may be repeated")
	flags.BoolVar(&o.AfterAnyEnd, "after-any-end", false,
		"have it wait until those jobs have ended in any way, also as dead letters, cancelled or removed")
	flags.StringVar(&o.Debounce.Key, "debounce", "",
		"have it wait for further requests with this key, which change its payload and its time")
	flags.DurationVar(&o.Debounce.Wait, "debounce-wait", time.Minute, "how long after the last request it is due")
	flags.DurationVar(&o.Debounce.MaxWait, "debounce-max-wait", 0,
		"how long after the first request it is due at the latest (default: there is no such time)")
	flags.StringVar((*string)(&o.Debounce.Keep), "debounce-keep", "newest", "which payload it has: newest, first or merged")
	flags.StringVar(&o.Debounce.Merge, "debounce-merge", "",
		"the function of the database that merges payloads (default: the members of both, the newer ones first)")
	flags.StringVar(&callback.Name, "callback", "",
		"have it begin when another system has called back; the name by which the handler reads the callback")
	flags.DurationVar(&callback.Within, "callback-within", 24*time.Hour,
		"how long the callback may take to come; the job begins then in any case")
	flags.StringSliceVar(&o.Encrypt, "encrypt", nil,
		"members of the payload to keep encrypted, or * for all; needs DAYBOOK_ENCRYPTION_KEYS")
	flags.BoolVar(&o.SkipValidation, "skip-validation", false, "leave the check against the type's schema to the worker")
	a.CreateFlag(command)
	_ = command.MarkFlagRequired("org")
	return command
}

// unusedDebounce refuses the flags of a debounced job that has no key.
func unusedDebounce(c *cobra.Command) error {
	for _, name := range []string{"debounce", "debounce-wait", "debounce-max-wait", "debounce-keep", "debounce-merge"} {
		if c.Flags().Changed(name) {
			return cli.Usagef("--%s needs a key: --debounce KEY", name)
		}
	}
	return nil
}

// emitEnqueued says what a request led to.
func emitEnqueued(a *cli.App, done *queue.EnqueuedJobWithCallback) error {
	return a.Emit(answers.EnqueuedJob{
		ID: done.ID, Duplicate: done.Duplicate, CallbackToken: done.Token,
		Result: string(done.Result),
	}, func(w io.Writer) error {
		what := "enqueued"
		switch {
		case done.Result == queue.Replaced:
			what = "replaced the payload that waited"
		case done.Duplicate:
			what = "there already"
		}
		_, err := fmt.Fprintf(w, "%s (job %s)\n", what, done.ID)
		if done.Token != "" && err == nil {
			_, err = fmt.Fprintf(w, "it waits for POST /api/callbacks/%s; the token is not shown again\n", done.Token)
		}
		return err
	})
}

// readPayload reads a payload from the flag, or from the file that it names. What is empty is {}.
func readPayload(a *cli.App, text string) (json.RawMessage, error) {
	raw, err := readJSON(a, "--payload", text)
	if err == nil && len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	return raw, err
}

// readJSON reads JSON from a flag, or from the file that it names, and says where it is none.
func readJSON(a *cli.App, flag, text string) (json.RawMessage, error) {
	data := []byte(text)
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		var err error
		if data, err = a.ReadInput(path); err != nil {
			return nil, err
		}
	}
	data, err := bom.Trim(data) // a flag may hold what was a file
	if err != nil {
		return nil, cli.Tagged(queue.ErrPayloadInvalid, "%s: %v", flag, err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var raw json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		if at, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, cli.Tagged(queue.ErrPayloadInvalid, "%s is no JSON: at byte %d: %v", flag, at.Offset, err)
		}
		return nil, cli.Tagged(queue.ErrPayloadInvalid, "%s is no JSON: %v", flag, err)
	}
	if err := strictjson.UnmarshalSettings(data, new(any)); err != nil { // such as a name that is there twice
		return nil, cli.Tagged(queue.ErrPayloadInvalid, "%s: %v", flag, err)
	}
	return raw, nil
}

// parseDue reads when something is due, by a flag that names the time or by --delay.
func parseDue(flag, text string, delay time.Duration) (time.Time, error) {
	switch {
	case text != "" && delay != 0:
		return time.Time{}, cli.Usagef("give either %s or --delay", flag)
	case delay < 0:
		return time.Time{}, cli.Usagef("--delay must not be negative")
	case delay > 0:
		return time.Now().Add(delay), nil
	case text == "":
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, cli.Usagef("%s %q: want a time such as 2026-01-31T09:00:00Z", flag, text)
	}
	return t, nil
}

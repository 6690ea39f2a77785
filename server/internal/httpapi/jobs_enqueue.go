package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/queue"
)

type enqueueJobInput struct {
	Body struct {
		OrgID          string         `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Type           string         `json:"type" minLength:"1" maxLength:"64" pattern:"^[A-Za-z][A-Za-z0-9_.:-]*$" doc:"Names the handler" example:"webhook_delivery"`
		Payload        answers.Object `json:"payload" doc:"What the job is about: 128 KB, 10 levels, 500 keys at most"`
		IdempotencyKey string         `json:"idempotencyKey,omitempty" maxLength:"255" doc:"Makes the request repeatable"`
		RunAt          time.Time      `json:"runAt,omitzero" required:"false" doc:"When it is due; default now" example:"2024-01-15T10:30:00Z"`
		Priority       string         `json:"priority,omitempty" enum:"low,normal,high" doc:"Default normal"`
		MaxAttempts    int            `json:"maxAttempts,omitempty" minimum:"1" maximum:"1000" doc:"After how many attempts it is a dead letter; default the policy of the type's handler"`
		MinVersion     int            `json:"minVersion,omitempty" minimum:"1" maximum:"2147483647" doc:"The lowest version of the type's handler that may work it: workers with an older one leave it alone; default any"`
		Links          []answers.Link `json:"links,omitempty" maxItems:"32" doc:"What it is about, to find it by"`
		Unique         bool           `json:"unique,omitempty" doc:"Have no second one of the same type and payload while one waits or runs"`
		Queue          string         `json:"queue,omitempty" maxLength:"64" doc:"The named queue; default the queue default"`
		Sequence       string         `json:"sequence,omitempty" maxLength:"255" doc:"Work it after the earlier jobs of the organization with this key: each begins when the one before it is completed or cancelled"`
		LimitKey       string         `json:"limitKey,omitempty" maxLength:"255" doc:"What it shares the limit of its queue or its type with, such as a customer's account; default what the limit says"`
		After          []string       `json:"after,omitempty" maxItems:"100" doc:"Ids of jobs of the organization that must be completed before it is due"`
		AfterAnyEnd    bool           `json:"afterAnyEnd,omitempty" doc:"Have it wait until those of after have ended in any way: completed, as dead letters, cancelled or removed"`
		Encrypt        []string       `json:"encrypt,omitempty" maxItems:"100" doc:"Members of the payload to keep encrypted in the database, or * alone for all"`
		Debounce       *jobDebounce   `json:"debounce,omitempty" required:"false" doc:"Have it wait for further requests with a key, which change its payload and its time; without idempotencyKey, runAt, unique, sequence, after, minVersion and callback"`
		Callback       *jobCallback   `json:"callback,omitempty" required:"false" doc:"Have it begin when another system has called back, or when the time is over; without runAt, unique, sequence, after and debounce"`
		SkipValidation bool           `json:"skipValidation,omitempty" doc:"Leave the check against the type's schema to the worker"`
	}
}

// jobDebounce has a job wait for further requests.
type jobDebounce struct {
	Key            string  `json:"key" minLength:"1" maxLength:"255" doc:"Says which requests of the organization and type are one" example:"customer-17"`
	WaitSeconds    float64 `json:"waitSeconds" minimum:"0" maximum:"3153600000" doc:"How long after the last request the job is due"`
	MaxWaitSeconds float64 `json:"maxWaitSeconds,omitempty" minimum:"0" maximum:"3153600000" doc:"How long after the first request it is due at the latest; default: there is no such time"`
	Keep           string  `json:"keep,omitempty" enum:"newest,first,merged" doc:"Which payload it has: that of the last request, of the first, or the members of all, the newer ones first; default newest"`
}

// jobCallback has a job wait for another system's answer.
type jobCallback struct {
	Name          string  `json:"name" minLength:"1" maxLength:"64" doc:"The name by which the handler reads it"`
	WithinSeconds float64 `json:"withinSeconds" exclusiveMinimum:"0" maximum:"315360000" doc:"How long it may take to come"`
}

type enqueueOutput struct {
	Status int
	Body   answers.EnqueuedJob
}

func (s *server) enqueueJob(ctx context.Context, in *enqueueJobInput) (*enqueueOutput, error) {
	b := &in.Body
	org, err := caller(ctx).reachOne(b.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	if err := s.mayEnqueue(ctx, b.Type); err != nil {
		return nil, err
	}
	if s.CheckPayload != nil && !b.SkipValidation {
		if err := s.CheckPayload(b.Type, json.RawMessage(b.Payload)); err != nil {
			return nil, err
		}
	}
	links := make([]queue.Link, len(b.Links))
	for i, l := range b.Links {
		links[i] = queue.Link(l)
	}
	payload := queue.RawPayload{Type: b.Type, Data: json.RawMessage(b.Payload)}
	options := queue.JobOptions{
		IdempotencyKey: b.IdempotencyKey, RunAt: b.RunAt, Priority: priority(b.Priority), MaxAttempts: b.MaxAttempts,
		Links: links, Unique: b.Unique, MinVersion: b.MinVersion, Encryption: s.Encryption, Encrypt: b.Encrypt,
		SkipValidation: b.SkipValidation, Queue: b.Queue, Sequence: b.Sequence, After: b.After, AfterAnyEnd: b.AfterAnyEnd,
		LimitKey: b.LimitKey,
	}
	if d := b.Debounce; d != nil {
		options.Debounce = queue.Debounce{
			Key: d.Key, Wait: seconds(d.WaitSeconds), MaxWait: seconds(d.MaxWaitSeconds), Keep: queue.Keep(d.Keep),
		}
	}
	var done queue.EnqueuedJobWithCallback
	if b.Callback == nil {
		done.EnqueuedJob, err = queue.EnqueueJob(ctx, s.pool, org, payload, options)
	} else {
		within := seconds(b.Callback.WithinSeconds)
		done, err = queue.EnqueueJobWithCallback(ctx, s.pool, org, payload,
			queue.CallbackOptions{Name: b.Callback.Name, Within: within}, options)
	}
	if err != nil {
		return nil, err
	}
	out := &enqueueOutput{
		Status: http.StatusCreated,
		Body: answers.EnqueuedJob{
			ID: done.ID, Duplicate: done.Duplicate, CallbackToken: done.Token,
			Result: string(done.Result),
		},
	}
	if done.Duplicate {
		out.Status = http.StatusOK
	}
	return out, nil
}

package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// What Airtable allows: five requests a second to each base. After one too many, the base answers
// nothing for 30 s.
const (
	airtablePace    = 200 * time.Millisecond
	airtablePenalty = 30 * time.Second
	// airtablePatience is how long a job waits for its turn; a longer wait puts it off.
	airtablePatience = 5 * time.Second
	// maxBases is how many bases are remembered.
	maxBases = 1000
)

// airtableAnswer is the answer to an upsert.
type airtableAnswer struct {
	Records []struct {
		ID string `json:"id"`
	} `json:"records"`
	Created []string `json:"createdRecords"`
	Updated []string `json:"updatedRecords"`
}

// upsert writes up to ten records: those that have the key are changed, the others made.
func (h *AirtableHandler) upsert(ctx context.Context, s *AirtableSettings, token, key string,
	rows []map[string]any,
) (airtableAnswer, error) {
	if err := h.bases.turn(ctx, s.BaseID); err != nil {
		return airtableAnswer{}, err
	}
	records := make([]any, len(rows))
	for i, row := range rows {
		records[i] = map[string]any{"fields": row}
	}
	body, err := json.Marshal(map[string]any{
		"performUpsert": map[string]any{"fieldsToMergeOn": []string{key}}, "typecast": true, "records": records,
	})
	if err != nil {
		return airtableAnswer{}, invalid("data cannot be written as JSON")
	}
	to := h.config.URL + "/v0/" + url.PathEscape(s.BaseID) + "/" + url.PathEscape(s.TableName)
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, to, bytes.NewReader(body))
	if err != nil {
		return airtableAnswer{}, invalid("airtableSettings.table_name cannot be asked for")
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	ctx, asking := span.Start(ctx,
		span.Span{
			Name: "sync airtable", Kind: span.Client,
			Attrs: []span.Attr{{Key: "server.address", Value: r.URL.Hostname()}},
		})
	answer, err := h.ask(r.WithContext(ctx))
	if err != nil {
		asking.End(err)
		return airtableAnswer{}, err
	}
	asking.Set(span.Attr{Key: "http.response.status_code", Value: answer.status})
	if !answer.ok() {
		asking.End(errNotSynced)
		return airtableAnswer{}, h.refused(s.BaseID, r, answer, token)
	}
	asking.End(nil)
	var written airtableAnswer
	if json.Unmarshal(answer.body, &written) != nil {
		return airtableAnswer{}, fail(models.CodeUpstream5xx, "%s answered %d without saying what it wrote", origin(r.URL),
			answer.status)
	}
	return written, nil
}

// errNotSynced is what a span says of records that were refused: the job's own error has Airtable's
// words.
var errNotSynced = refusedError("the records were refused")

type refusedError string

func (e refusedError) Error() string { return string(e) }

// refused says what an answer that is no success leads to.
func (h *AirtableHandler) refused(base string, r *http.Request, answer reply, token string) *failure {
	f := judge(r, answer, strings.ReplaceAll(airtableWords(answer.body), token, "***"))
	if answer.status == http.StatusTooManyRequests {
		f.after = max(f.after, airtablePenalty)
	}
	if f.after > 0 {
		h.bases.rest(base, f.after)
	}
	return f
}

// airtableWords are the words of an error: a text, or an object with a type and a message.
func airtableWords(body []byte) string {
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	var text string
	var object struct{ Type, Message string }
	switch {
	case json.Unmarshal(said.Error, &text) == nil:
		return text
	case json.Unmarshal(said.Error, &object) == nil && object.Message != "":
		return object.Message + " (" + object.Type + ")"
	}
	return object.Type
}

// bases keep the requests of this process to each base within what Airtable allows.
type bases struct {
	mu  sync.Mutex
	all map[string]*base
}

// base is one of them.
type base struct {
	limit *rate.Limiter
	// until is when the base answers again; used when it was asked for last.
	until, used time.Time
}

// of returns a base; the caller holds mu.
func (b *bases) of(id string, now time.Time) *base {
	if b.all == nil {
		b.all = map[string]*base{}
	}
	if len(b.all) >= maxBases {
		for id, base := range b.all {
			if now.Sub(base.used) > time.Minute && now.After(base.until) {
				delete(b.all, id)
			}
		}
	}
	if b.all[id] == nil {
		b.all[id] = &base{limit: rate.NewLimiter(rate.Every(airtablePace), 1)}
	}
	b.all[id].used = now
	return b.all[id]
}

// turn waits until the base may be asked. A job that would wait too long is put off instead, and no
// attempt is counted.
func (b *bases) turn(ctx context.Context, id string) error {
	now := time.Now()
	b.mu.Lock()
	base := b.of(id, now)
	wait := base.until.Sub(now)
	var place *rate.Reservation
	if wait <= 0 {
		place = base.limit.ReserveN(now, 1)
		wait = place.DelayFrom(now)
	}
	if wait > airtablePatience && place != nil {
		place.CancelAt(now)
	}
	b.mu.Unlock()
	switch {
	case wait > airtablePatience || wait > 0 && place == nil:
		return jobs.Snooze(wait)
	case wait <= 0:
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fail(models.CodeTimeout, "the attempt ended while it waited for its turn at the base %s", id)
	}
}

// rest notes that a base answers nothing for d.
func (b *bases) rest(id string, d time.Duration) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	base := b.of(id, now)
	if until := now.Add(d); until.After(base.until) {
		base.until = until
	}
}

package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/redact"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// editable reports whether a job's payload may be edited.
func editable(j *models.Job) bool {
	return j.State == models.JobPending || j.State == models.JobFailed || j.State == models.JobCancelled
}

// shownEdit is an edit of a payload as the page of its job shows it.
type shownEdit struct {
	At       time.Time
	By       string
	Attempts int
	Changes  []payload.Difference
	// Hidden says that a secret was changed.
	Hidden bool
}

// editsShown are the edits of a job, the newest first.
func editsShown(j *models.Job, secrets []string) []shownEdit {
	list := make([]shownEdit, len(j.Edits))
	after := j.Payload
	for i, e := range slices.Backward(j.Edits) {
		one := shownEdit{At: e.At, By: e.By, Attempts: e.Attempts}
		one.Changes, one.Hidden = shownDiff(j.Type, secrets, e.Payload, after)
		list[len(list)-1-i], after = one, e.Payload
	}
	return list
}

// shownDiff is where two payloads differ, without secrets, and whether a secret differs.
func shownDiff(jobType string, secrets []string, before, after json.RawMessage) (list []payload.Difference, hidden bool) {
	shown := func(raw json.RawMessage) json.RawMessage {
		return json.RawMessage(redact.JSON(jobType, raw, secrets...))
	}
	list = payload.Diff(shown(before), shown(after))
	return list, len(payload.Diff(before, after)) > len(list)
}

// payloadForm is the form by which a payload is edited, and what became of it.
type payloadForm struct {
	Job    *models.Job
	Fields []payloadField
	// Generation is the job's as the form was first shown.
	Generation string
	Mask       string
	// Problem is what is wrong with the payload as a whole, or where no field is to blame.
	Problem string
	// Compared says that nothing is wrong: Changes and Hidden are what would change.
	Compared bool
	Changes  []payload.Difference
	Hidden   bool

	secrets []string
	// edited is the payload, if nothing is wrong with the fields.
	edited json.RawMessage
}

// Encrypted reports whether members of the payload are encrypted, which the form does not show.
func (f *payloadForm) Encrypted() bool { return encryption.KeyOf(f.Job.Payload) != "" }

// payloadField is a member of a payload, as JSON; without a name: one that is to be added.
type payloadField struct {
	Name, ID, Value string
	// Errors are all that is wrong with it.
	Errors []string
}

func (f *payloadField) wrong(says string) { f.Errors = append(f.Errors, says) }

// Wrong counts the fields that have errors.
func (f *payloadForm) Wrong() (n int) {
	for i := range f.Fields {
		if f.Fields[i].Errors != nil {
			n++
		}
	}
	return n
}

// Rows is how high the field is.
func (f *payloadField) Rows() int { return min(strings.Count(f.Value, "\n")+1, 20) }

// fail puts what is wrong beside the fields that have it, those that are missing too.
func (f *payloadForm) fail(err error) {
	wrong, ok := errors.AsType[*payload.Error](err)
	if !ok {
		f.Problem = err.Error()
		return
	}
	if len(wrong.Fields) == 0 {
		f.Problem = wrong.Error()
	}
	for _, one := range wrong.Fields {
		token, _, deeper := strings.Cut(strings.TrimPrefix(one.Field, "/"), "/")
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		says := strings.ToUpper(one.Message[:1]) + one.Message[1:] + "."
		if deeper {
			says = one.Field + ": " + one.Message + "."
		}
		f.field(name).wrong(says)
	}
}

// field is the field of a member; one that is missing is added.
func (f *payloadForm) field(name string) *payloadField {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			return &f.Fields[i]
		}
	}
	return f.add(name, "")
}

// jobToEdit reads the job that a form is about. A token that may not enqueue its type may not say
// what it is to do either.
func (c *console) jobToEdit(ctx context.Context, r *request) (*payloadForm, error) {
	org, err := r.reach("")
	if err != nil {
		return nil, err
	}
	job, err := c.Listing.JobToEdit(ctx, org, r.PathValue("id"))
	if err == nil {
		err = r.Token.CheckType(job.Type, c.TypeName)
	}
	if err != nil {
		return nil, err
	}
	secrets, err := store.SecretsOf(ctx, c.Pool, job.Type)
	return &payloadForm{
		Job: &job, Generation: strconv.FormatInt(job.Generation, 10), Mask: redact.Mask, secrets: secrets,
	}, err
}

// editPage shows the payload as a form.
func (c *console) editPage(ctx context.Context, r *request) (*view, error) {
	f, err := c.jobToEdit(ctx, r)
	if err != nil {
		return nil, err
	}
	members, _ := object(json.RawMessage(redact.JSON(f.Job.Type, f.Job.Payload, f.secrets...)))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != encryption.Member {
			f.add(name, indented(members[name]))
		}
	}
	return f.view(r), nil
}

// comparePage shows what is wrong with an edited payload, or what would change.
func (c *console) comparePage(ctx context.Context, r *request) (*view, error) {
	f, err := c.jobToEdit(ctx, r)
	if err != nil {
		return nil, err
	}
	c.readForm(r, f)
	return f.view(r), nil
}

func (f *payloadForm) add(name, value string) *payloadField {
	f.Fields = append(f.Fields, payloadField{Name: name, ID: "f-" + strconv.Itoa(len(f.Fields)), Value: value})
	return &f.Fields[len(f.Fields)-1]
}

func (f *payloadForm) view(r *request) *view {
	f.add("", "")
	page := r.link("jobs/" + url.PathEscape(f.Job.ID))
	return &view{
		Title: "Edit the payload", Template: "job-edit", Nav: "jobs",
		Trail: []trail{{"Jobs", r.link("jobs")}, {"Job " + f.Job.Type, page}}, Data: f,
	}
}

// checkPayload checks a payload as when it is enqueued, and against the schema of its type.
func (c *console) checkPayload(org, jobType string, raw json.RawMessage) error {
	err := queue.CheckJob(org, queue.RawPayload{Type: jobType, Data: raw}, queue.JobOptions{})
	if err != nil || c.CheckPayload == nil {
		return err
	}
	return c.CheckPayload(jobType, raw)
}

// readForm makes the payload of the form's fields, and checks it as when it is enqueued. All that is
// wrong is found at once: what the schema refuses beside what is no JSON.
func (c *console) readForm(r *request, f *payloadForm) {
	f.Generation = r.PostFormValue("generation")
	edited := f.members(r)
	unread := map[int][]string{}
	for i := range f.Fields {
		if f.Fields[i].Errors != nil {
			unread[i] = f.Fields[i].Errors
		}
	}
	raw, err := json.Marshal(edited)
	if err == nil {
		err = c.checkPayload(f.Job.OrgID, f.Job.Type, raw)
	}
	if err != nil {
		f.fail(err)
	}
	for i, says := range unread {
		f.Fields[i].Errors = says // what it should be can be told when it can be read
	}
	if err != nil || len(unread) > 0 {
		return
	}
	f.edited, f.Compared = raw, true
	f.Changes, f.Hidden = shownDiff(f.Job.Type, f.secrets, f.Job.Payload, raw)
}

// members reads the form's fields. What is encrypted stays as it is.
func (f *payloadForm) members(r *request) map[string]any {
	shown, _ := object(json.RawMessage(redact.JSON(f.Job.Type, f.Job.Payload, f.secrets...)))
	stored, _ := object(f.Job.Payload)
	edited := map[string]any{}
	hidden, encrypted := stored[encryption.Member]
	names, values := r.PostForm["name"], r.PostForm["value"]
	for i, name := range names[:min(len(names), len(values))] {
		text := strings.TrimSpace(values[i])
		if name == "" || text == "" {
			continue
		}
		field := f.add(name, strings.ReplaceAll(text, "\r\n", "\n"))
		value, err := decodeJSON([]byte(text))
		value = unmask(value, shown[name], stored[name])
		_, twice := edited[name]
		_, known := stored[name]
		switch {
		case err != nil:
			field.wrong("It is no JSON: a text stands in quotes.")
		case strings.Contains(indented(value), redact.Mask):
			field.wrong("It has " + redact.Mask + " where it had not: write the value itself.")
		case twice:
			field.wrong("There is such a field already.")
		case encrypted && (!known || name == encryption.Member):
			field.wrong("The payload is encrypted, and a further field would be kept in plain: give all of it by " +
				"daybook jobs edit --encrypt.")
		default:
			edited[name] = value
		}
	}
	if encrypted {
		edited[encryption.Member] = hidden
	}
	return edited
}

// editJob stores an edited payload.
func (c *console) editJob(ctx context.Context, r *request) (done, error) {
	id, page, err := c.ownJob(ctx, r)
	if err != nil {
		return done{}, err
	}
	f, err := c.jobToEdit(ctx, r)
	if err != nil {
		return done{}, err
	}
	c.readForm(r, f)
	generation, err := strconv.ParseInt(f.Generation, 10, 64)
	switch {
	case err != nil:
		return done{}, wrongParameter("the job's generation is missing: edit it again from its page")
	case f.edited == nil:
		return done{}, store.Refuse(queue.ErrPayloadInvalid, cmp.Or(f.Problem, "a field of the payload is wrong"),
			"go back and compare, which says where")
	}
	mode := queue.RetryMode(r.PostFormValue("retry"))
	answer, err := queue.EditJob(ctx, c.Pool, id, queue.RawPayload{Type: f.Job.Type, Data: f.edited},
		queue.EditOptions{By: r.Token.Name, Retry: mode, Generation: &generation})
	text := "The payload was changed."
	switch answer.Result {
	case queue.Requeued, queue.Rescheduled:
		text += " " + retried(answer)
	case queue.Unchanged:
		text = "Nothing was changed: " + answer.Reason + "."
	default:
	}
	return done{To: page, Text: text, Subject: id, Details: map[string]any{"retry": mode}}, err
}

// unmask puts back the values that were not shown: those that stand where the form had their mask.
func unmask(v, shown, stored any) any {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, redact.Mask) && v == shown {
			return stored
		}
	case map[string]any:
		shown, _ := shown.(map[string]any)
		stored, _ := stored.(map[string]any)
		for name := range v {
			v[name] = unmask(v[name], shown[name], stored[name])
		}
	case []any:
		shown, _ := shown.([]any)
		stored, _ := stored.([]any)
		unmaskList(v, shown, stored)
	}
	return v
}

// unmaskList is unmask for an array, of which elements may have been moved, added or removed. The
// element that alone was edited is known by its place, any other by what it shows. The mask stays
// where two elements that show the same hide different values.
func unmaskList(v, shown, stored []any) {
	if len(shown) != len(stored) {
		return
	}
	edited := 0
	for i := range v {
		if len(v) != len(shown) || !reflect.DeepEqual(v[i], shown[i]) {
			edited++
		}
	}
	for i := range v {
		if edited <= 1 && len(v) == len(shown) {
			v[i] = unmask(v[i], shown[i], stored[i])
			continue
		}
		var known []any
		for k := range shown {
			if reflect.DeepEqual(v[i], shown[k]) && !slices.ContainsFunc(known, func(o any) bool { return reflect.DeepEqual(o, stored[k]) }) {
				known = append(known, stored[k])
			}
		}
		if len(known) == 1 {
			v[i] = known[0]
		}
	}
}

// decodeJSON reads one JSON value, with numbers as they are written.
func decodeJSON(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	return v, err
}

func object(raw json.RawMessage) (map[string]any, error) {
	v, err := decodeJSON(raw)
	members, _ := v.(map[string]any)
	return members, err
}

// indented is a value as JSON.
func indented(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // a template escapes it
	e.SetIndent("", "  ")
	_ = e.Encode(v) // it was JSON
	return strings.TrimSuffix(out.String(), "\n")
}

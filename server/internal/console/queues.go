package console

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/namedqueue"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// queues adds the list of named queues, a page of each, and what can be done to them.
func (c *console) queues() {
	c.addToMenu(menuEntry{Group: "Operate", Name: "Queues", Path: "queues"})
	c.page("GET "+Root+"queues", tokens.ScopeRead, c.queueList)
	c.page("GET "+Root+"queues/{name}", tokens.ScopeRead, c.queuePage)
	c.action(Root+"queues", tokens.ScopeOperate, "queues.create", c.createQueue)
	c.action(Root+"queues/{name}/set", tokens.ScopeOperate, "queues.set", c.setQueue)
	c.action(Root+"queues/{name}/pause", tokens.ScopeOperate, "queues.pause",
		c.pauseQueue(true, "Paused: nothing of it begins until it is resumed. What has begun is finished."))
	c.action(Root+"queues/{name}/resume", tokens.ScopeOperate, "queues.resume", c.pauseQueue(false, "Resumed."))
	c.action(Root+"queues/{name}/release", tokens.ScopeOperate, "queues.release", c.releaseQueue)
	c.action(Root+"queues/{name}/delete", tokens.ScopeOperate, "queues.delete", c.deleteQueue)
}

// queueLine is a named queue as a list shows it.
type queueLine struct{ store.NamedQueue }

// rateIn says how many attempts may begin in which time.
func rateIn(rate int, seconds float64) string {
	return fmt.Sprintf("%s in %s", number(rate), phrase.Duration(time.Duration(seconds*float64(time.Second))))
}

// RateText says how many attempts may begin in which time; empty: any number.
func (q queueLine) RateText() string {
	if q.Rate == 0 {
		return ""
	}
	text := rateIn(q.Rate, q.RateSeconds)
	if q.RateBurst > 0 {
		text += ", " + number(q.RateBurst) + " at once"
	}
	return text
}

// Unworked reports whether due jobs wait for a worker of a fleet that has none.
func (q queueLine) Unworked() bool { return q.Workers == 0 && q.Due > 0 && q.PausedAt == nil }

// Most is how many of its jobs may be worked at a time, as a list shows it.
func (q queueLine) Most() string {
	if q.MaxParallel == 0 {
		return "any"
	}
	return number(q.MaxParallel)
}

func (c *console) queueList(ctx context.Context, r *request) (*view, error) {
	if err := wholeInstance(r); err != nil {
		return nil, err
	}
	p := store.QueuesPage{After: value(r, "after"), Limit: pageRows + 1}
	if fleet := value(r, "fleet"); fleet != "" {
		p.Fleet = &fleet
	}
	list, err := store.NamedQueues(ctx, c.Pool, p)
	if err != nil {
		return nil, err
	}
	next := ""
	if len(list) > pageRows {
		list = list[:pageRows]
		next = list[len(list)-1].Name
	}
	lines := make([]queueLine, len(list))
	for i, u := range list {
		lines[i] = queueLine{u}
	}
	limits, err := store.KeyLimits(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	limited := make([]limitLine, len(limits))
	for i, l := range limits {
		limited[i] = limitLine{l}
	}
	form := r.filter(filters{Action: Root + "queues", Hidden: hiddenOrg(r), Fields: []field{{Name: "fleet", Label: "Fleet"}}})
	if p.Fleet != nil {
		form.Clear = r.link("queues")
	}
	return &view{
		Title: "Queues", Template: "queues", Nav: "queues", Live: p.After == "",
		Lead: "Named queues of background jobs: each has limits of its own, and a fleet of workers that works it.",
		Data: map[string]any{
			"Queues": lines, "Pager": pagerBy(r, "after", next), "Filters": form, "Filtered": form.Clear != "",
			"Limits": limited,
			"Limit": button{
				Action: Root + "limits/", Label: "Limit a type by key", Tone: "quiet",
				Confirm: "Of its jobs of one organization and key so many run at a time, or begin in a time, over all workers.",
				Fields: append([]field{{Name: "type", ID: "limit-type", Label: "Type"}},
					limitFields("limit-", store.KeyLimit{})...),
			},
			"New": button{
				Action: Root + "queues", Label: "Make a queue", Tone: "quiet",
				Confirm: "Jobs can be enqueued in it at once.", Fields: append(
					[]field{{Name: "name", ID: "new-name", Label: "Name"}}, queueFields("new-", store.NamedQueue{})...),
			},
		},
	}, nil
}

// most is a number as a form has it; 0: any, which is empty.
func most(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// secondsGiven is the time of a rate as a form has it; empty: there is no rate.
func secondsGiven(rate int, seconds float64) string {
	if rate == 0 {
		return ""
	}
	return strconv.FormatFloat(seconds, 'f', -1, 64)
}

// queueFields are the settings of a queue as a form asks for them; prefix tells the inputs of one
// form from those of another.
func queueFields(prefix string, u store.NamedQueue) []field {
	seconds := secondsGiven(u.Rate, u.RateSeconds)
	return []field{
		{Name: "fleet", ID: prefix + "fleet", Label: "Fleet", Value: u.Fleet, Placeholder: "the one without a name"},
		{
			Name: "maxParallel", ID: prefix + "parallel", Label: "Jobs at a time", Type: "number", Value: most(u.MaxParallel),
			Placeholder: "any",
		},
		{
			Name: "perProcess", ID: prefix + "process", Label: "Jobs a process", Type: "number", Value: most(u.PerProcess),
			Placeholder: "any",
		},
		{Name: "rate", ID: prefix + "rate", Label: "Attempts", Type: "number", Value: most(u.Rate), Placeholder: "any"},
		{Name: "rateSeconds", ID: prefix + "seconds", Label: "in seconds", Value: seconds, Placeholder: "1"},
		{Name: "rateBurst", ID: prefix + "burst", Label: "of them at once", Type: "number", Value: most(u.RateBurst)},
		{Name: "owner", ID: prefix + "owner", Label: "Owner", Value: u.Owner},
	}
}

func (c *console) queuePage(ctx context.Context, r *request) (*view, error) {
	if err := wholeInstance(r); err != nil {
		return nil, err
	}
	u, err := store.QueueOf(ctx, c.Pool, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	limit, err := store.KeyLimitOf(ctx, c.Pool, store.LimitScope{Queue: u.Name})
	if err != nil {
		return nil, err
	}
	at := Root + joinPath("queues", u.Name) + "/"
	pause := button{
		Action: at + "pause", Label: "Pause", Tone: "quiet", Next: r.here(),
		Confirm: "Nothing of it begins until it is resumed. What has begun is finished.",
	}
	if u.PausedAt != nil {
		pause = button{Action: at + "resume", Label: "Resume", Next: r.here()}
	}
	buttons := []button{
		pause,
		{
			Action: at + "set", Label: "Change settings", Tone: "quiet", Next: r.here(), Fields: queueFields("set-", u),
			Confirm: "They hold for what begins from now on. A field that is empty is at its default. Open jobs go to the " +
				"fleet that is named.",
		},
	}
	if u.SetBy != "" {
		buttons = append(buttons, button{
			Action: at + "release", Label: "Give the settings back", Tone: "quiet", Next: r.here(),
			Confirm: "What its programs have asked for last counts again. Where none has asked for any, the settings stay " +
				"until one does.",
		})
	}
	buttons = append(buttons,
		button{
			Action: at + "delete", Label: "Delete", Tone: "danger",
			Confirm: "Only a queue without open jobs can be deleted.",
		})
	return &view{
		Title: "Queue " + u.Name, Template: "queue", Nav: "queues", Live: true,
		Trail: []trail{{"Queues", r.link("queues")}}, Data: map[string]any{
			"Queue": queueLine{u}, "Limit": limitLine{limit}, "Buttons": buttons,
		},
	}, nil
}

// queueForm reads the settings of a queue from a form, and notes those that are given for the log
// of actions.
func queueForm(ctx context.Context, r *request, name string) (store.NamedQueue, error) {
	u := store.NamedQueue{
		Name: name, Fleet: strings.TrimSpace(r.PostFormValue("fleet")),
		Owner: strings.TrimSpace(r.PostFormValue("owner")),
	}
	details := map[string]any{"fleet": u.Fleet, "owner": u.Owner}
	for name, into := range map[string]*int{
		"maxParallel": &u.MaxParallel, "perProcess": &u.PerProcess, "rate": &u.Rate,
		"rateBurst": &u.RateBurst,
	} {
		n, err := optionalNumber(r.PostFormValue(name))
		if err != nil {
			return u, err
		}
		if n != nil {
			*into, details[name] = *n, *n
		}
	}
	seconds, err := secondsOf(r, u.Rate)
	if err != nil {
		return u, err
	}
	if seconds != 0 {
		u.RateSeconds, details["rateSeconds"] = seconds, seconds
	}
	actions.About(ctx, "", name, details)
	return u, nil
}

func (c *console) createQueue(ctx context.Context, r *request) (done, error) {
	name := strings.TrimSpace(r.PostFormValue("name"))
	d := done{Subject: name, To: Root + joinPath("queues", name), Text: "The queue is made."}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	u, err := queueForm(ctx, r, name)
	if err == nil {
		_, err = namedqueue.Create(ctx, c.Pool, u)
	}
	return d, err
}

func (c *console) setQueue(ctx context.Context, r *request) (done, error) {
	name := r.PathValue("name")
	d := done{Subject: name, Text: "Saved. The settings hold for what begins from now on."}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	u, err := queueForm(ctx, r, name)
	if err != nil {
		return d, err
	}
	_, changed, err := namedqueue.Set(ctx, c.Pool, name, func(store.NamedQueue) store.NamedQueue { return u })
	d.unless(changed, "the queue has these settings already")
	return d, err
}

func (c *console) releaseQueue(ctx context.Context, r *request) (done, error) {
	name := r.PathValue("name")
	d := done{Subject: name, Text: "Given back: what its programs ask for counts."}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	_, changed, err := namedqueue.Release(ctx, c.Pool, name)
	d.unless(changed, "the settings are those of its programs already")
	return d, err
}

func (c *console) pauseQueue(paused bool, text string) func(ctx context.Context, r *request) (done, error) {
	return func(ctx context.Context, r *request) (done, error) {
		name := r.PathValue("name")
		d := done{Subject: name, Text: text}
		if err := wholeInstance(r); err != nil {
			return d, err
		}
		_, changed, err := namedqueue.Pause(ctx, c.Pool, name, paused)
		d.unless(changed, "the queue is "+map[bool]string{true: "paused", false: "active"}[paused]+" already")
		c.health.forget()
		return d, err
	}
}

func (c *console) deleteQueue(ctx context.Context, r *request) (done, error) {
	name := r.PathValue("name")
	d := done{Subject: name, To: Root + "queues", Text: "The queue " + name + " is deleted."}
	if err := wholeInstance(r); err != nil {
		return d, err
	}
	return d, namedqueue.Delete(ctx, c.Pool, name)
}

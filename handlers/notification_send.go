package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// channelOrder is the order in which channels are asked.
var channelOrder = []string{"email", "sms", "slack", "discord", "push"}

// channel is one way by which a notification goes.
type channel struct {
	name string
	// send sends once, and returns what the channel calls the message.
	send func(ctx context.Context) (reference string, err error)
}

// NotificationResult is the result of a job of the type notification.
type NotificationResult struct {
	// Channels say what became of each, by its name: email, sms, slack, discord, push.
	Channels map[string]ChannelResult `json:"channels"`
}

// ChannelResult is what became of one channel.
type ChannelResult struct {
	State models.DeliveryState `json:"state"`
	// Attempt is the one that asked; Reference what the channel calls the message: a Message-ID,
	// Twilio's SID, a time of Slack.
	Attempt   int    `json:"attempt"`
	Reference string `json:"reference,omitempty"`
}

// channels are those of a payload, in their order.
func (h *NotificationHandler) channels(c *call[Notification]) []channel {
	p := &c.payload
	var all []channel
	if p.Email != nil {
		all = append(all, channel{"email", func(ctx context.Context) (string, error) {
			if h.email == nil {
				return "", fail(models.CodeHandlerError,
					"it is not configured at this worker: set DAYBOOK_SMTP_HOST and DAYBOOK_SMTP_FROM")
			}
			if err := h.email.sends(c.orgID); err != nil {
				return "", err
			}
			sent, err := h.email.deliverAs(ctx, c.orgID, p.email(), h.email.idOf(c.orgID+"\n"+p.JobType()+"\n"+c.key))
			return sent.MessageID, err
		}})
	}
	if p.SMS != nil {
		all = append(all, channel{"sms", func(ctx context.Context) (string, error) {
			if h.sms == nil {
				return "", fail(models.CodeHandlerError,
					"it is not configured at this worker: set DAYBOOK_TWILIO_ACCOUNT_SID and DAYBOOK_SMS_FROM")
			}
			if err := h.sms.sends(c.orgID); err != nil {
				return "", err
			}
			sent, err := h.sms.deliver(ctx, p.SMS)
			return sent.MessageSID, err
		}})
	}
	if p.Slack != nil {
		all = append(all, channel{
			"slack",
			func(ctx context.Context) (string, error) { return h.chat.slack(ctx, c.orgID, p.Slack) },
		})
	}
	if p.Discord != nil {
		all = append(all, channel{
			"discord",
			func(ctx context.Context) (string, error) { return h.chat.discord(ctx, c.orgID, p.Discord) },
		})
	}
	if p.Push != nil {
		all = append(all, channel{"push", func(ctx context.Context) (string, error) { return h.push.send(ctx, c, p.Push) }})
	}
	return all
}

// notify asks each channel that has not sent. What it knows of one and the database has not taken
// is in left.
func (h *NotificationHandler) notify(ctx context.Context, c *call[Notification], left *writes) error {
	if err := c.payload.Check(); err != nil {
		return err
	}
	var earlier map[string]store.Delivery
	if err := store.Await(ctx, receiptTimeout, func(ctx context.Context) (err error) {
		earlier, err = store.Deliveries(ctx, h.pool, c.id)
		return err
	}); err != nil {
		return err
	}
	sum := &summary{}
	for _, ch := range h.channels(c) {
		was, known := earlier[ch.name]
		if known && was.State == models.DeliverySent {
			sum.add(was, nil)
			continue
		}
		if ctx.Err() != nil {
			sum.add(store.Delivery{Channel: ch.name, State: models.DeliveryFailed, Attempt: c.attempt},
				fail(models.CodeTimeout, "the attempt's time was over before it was asked"))
			continue
		}
		begun, mark := false, rand.Text()
		if err := store.Await(ctx, receiptTimeout, func(ctx context.Context) (err error) {
			begun, err = store.BeginDelivery(ctx, h.pool, c.id, ch.name, c.attempt, mark)
			return err
		}); err != nil {
			*left = append(*left, func(ctx context.Context, tx pgx.Tx) error {
				return store.UndoDelivery(ctx, tx, c.id, ch.name, c.attempt, mark)
			})
			return err
		}
		if !begun && !known {
			was = store.Delivery{
				Channel: ch.name, State: models.DeliveryUnknown, Attempt: c.attempt, ErrorCode: models.CodeWorkerLost,
				Error: "another call of the job has begun to ask it meanwhile",
			}
		}
		if !begun {
			sum.add(was, &failure{code: was.ErrorCode, err: errors.New(was.Error)})
			continue
		}
		d, failed := ask(ctx, ch, c.attempt)
		sum.add(d, failed)
		if c.encrypted && d.Error != "" {
			d.Error = "it is kept with the job's attempt, encrypted"
		}
		if !h.note(ctx, c.id, d) {
			*left = append(*left, func(ctx context.Context, tx pgx.Tx) error { return store.EndDelivery(ctx, tx, c.id, d) })
		}
	}
	if err := sum.failure(); err != nil {
		return err
	}
	c.result(sum.result())
	return nil
}

// ask asks one channel, and says what became of it.
func ask(ctx context.Context, ch channel, attempt int) (store.Delivery, *failure) {
	d := store.Delivery{Channel: ch.name, State: models.DeliverySent, Attempt: attempt}
	reference, err := ch.send(ctx)
	d.Reference = clip(reference)
	if err == nil {
		return d, nil
	}
	failed, ok := errors.AsType[*failure](err)
	if !ok {
		failed = fail(models.CodeHandlerError, "%s", clip(err.Error()))
	}
	switch {
	case failed.unsure:
		d.State = models.DeliveryUnknown
	case failed.final, models.JobErrorIsFinal(failed.code):
		d.State = models.DeliveryRefused
	default:
		d.State = models.DeliveryFailed
	}
	d.ErrorCode, d.Error = failed.code, clip(failed.Error())
	return d, failed
}

// note writes what became of a channel, and says whether the database has taken it.
func (h *NotificationHandler) note(ctx context.Context, job string, d store.Delivery) bool {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), receiptTimeout)
	defer cancel()
	return store.EndDelivery(writing, h.pool, job, d) == nil
}

// summary is what became of all channels.
type summary struct {
	all    []store.Delivery
	failed []*failure
}

func (s *summary) add(d store.Delivery, f *failure) {
	s.all, s.failed = append(s.all, d), append(s.failed, f)
}

func (s *summary) result() NotificationResult {
	r := NotificationResult{Channels: map[string]ChannelResult{}}
	for _, d := range s.all {
		r.Channels[d.Channel] = ChannelResult{State: d.State, Attempt: d.Attempt, Reference: d.Reference}
	}
	return r
}

// usualWait is how long the type's own policy waits after an attempt.
func usualWait(attempt int) time.Duration {
	p := NotificationPolicy()
	return min(time.Duration(float64(p.Base)*math.Pow(p.Factor, float64(attempt-1))), p.Cap)
}

// failure is why the attempt has failed; nil: all channels have sent. While one of them may still
// send, the job is tried again.
func (s *summary) failure() error {
	var again, last *failure
	var after time.Duration
	waits, attempt := true, 1
	said := make([]string, len(s.all))
	for i, d := range s.all {
		f := s.failed[i]
		said[i] = d.Channel + ": " + string(d.State)
		if f == nil {
			continue
		}
		said[i] += fmt.Sprintf(" (%s: %s)", f.code, clip(f.Error()))
		switch {
		case d.State != models.DeliveryFailed:
			if last == nil {
				last = f
			}
			continue
		case again == nil:
			again = f
		}
		after, attempt = max(after, f.after), d.Attempt
		waits = waits && f.after > 0
	}
	text := strings.Join(said, "; ")
	if slices.ContainsFunc(s.all, func(d store.Delivery) bool { return d.State == models.DeliveryUnknown }) {
		text += "; what is unknown was perhaps sent, and is sent again only when the job is retried with --mode reset"
	}
	switch {
	case again != nil:
		f := fail(again.code, "%s", text)
		// A channel is not asked again before the time that it said, also where another one has said
		// none.
		if waits || after > usualWait(attempt) {
			f.after = after
		}
		return f
	case last != nil:
		f := fail(last.code, "%s", text)
		f.final = true
		return f
	}
	return nil
}

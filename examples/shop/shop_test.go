package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// bundle is a shop with a database of its own, and a listener that is told of its orders.
type bundle struct {
	*shop
	t *testing.T

	mu   sync.Mutex
	told []string
	// ids are the deliveries' ids, each of which must come once.
	ids map[string]int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, ids: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(b.listen))
	t.Cleanup(server.Close)
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, org)
	s, err := open(t.Context(), config{
		pool: db.Pool, webhookURL: server.URL + "/hooks", log: slog.New(slog.DiscardHandler),
		environment: map[string]string{"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,::1/128"},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.close()) })
	b.shop = s
	return b
}

// listen is the webhook's receiver.
func (b *bundle) listen(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var event struct {
		Event   string `json:"event"`
		OrderID string `json:"order_id"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil || event.OrderID == "" {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, event.OrderID+" "+event.Event)
	b.ids[r.Header.Get("webhook-id")]++
}

// events returns what the listener was told, in the order of the alphabet.
func (b *bundle) events() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.told))
}

func (b *bundle) count(query string, args ...any) int {
	b.t.Helper()
	return fixture.Count(b.t, b.pool, query, args...)
}

func anOrder(id string) order {
	return order{
		ID: id, Customer: "Ada", NetCents: 10000, TaxCents: 1900,
		PlacedAt: time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC),
	}
}

// TestOrder places an order with the workers running, as in production.
func TestOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := temporaltest.Shared(t)
	temporal := server.Client(t, server.Namespace(t))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.run(ctx, temporal) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})

	require.NoError(t, b.place(t.Context(), anOrder("order-1")))

	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := queue.WaitAccountingJob(within, b.pool, queue.Document{OrgID: org, ID: "order-1"},
		queue.WaitAccountingJobOptions{})
	require.NoError(t, err)
	assert.True(t, status.Posted(), "%+v", status)
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 3 }, time.Minute, 20*time.Millisecond)
	assert.Equal(t, []string{"order-1 order.booked", "order-1 order.placed"}, b.events())
	assert.Len(t, b.ids, 2)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM shop.receipts WHERE text = 'Ada pays 119.00 EUR for order order-1.'`))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM shop.orders WHERE booked_at IS NOT NULL`))
	assert.EqualValues(t, 11900, fixture.Balance(t, b.pool, org, "1200", "EUR"))
}

// TestProgram runs the program as its README says, until both events were told.
func TestProgram(t *testing.T) {
	b := setup(t)
	server := temporaltest.Shared(t)
	for name, value := range map[string]string{
		"DAYBOOK_DATABASE_URL": b.pool.Config().ConnString(), "SHOP_WEBHOOK_URL": b.webhookURL,
		"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8,::1/128",
		"TEMPORAL_ADDRESS":               server.Address, "TEMPORAL_NAMESPACE": server.Namespace(t),
		"TEMPORAL_CONFIG_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.DiscardHandler)) }()
	require.Eventually(t, func() bool { return len(b.events()) == 2 }, time.Minute, 20*time.Millisecond)
	stop()
	assert.NoError(t, <-ended)
}

// TestOrderIsOneTransaction looks at what an order asks for before it is committed, and rolls it
// back.
func TestOrderIsOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	changed := errors.New("the customer changed her mind")
	err := b.db.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
		if err := b.placeIn(t.Context(), tx, anOrder("order-1")); err != nil {
			return err
		}
		hook := queuetest.RequireJobEnqueued[handlers.Webhook](t, queue.GORM(tx))
		assert.Equal(t, "placed/order-1", hook.IdempotencyKey)
		assert.JSONEq(t, `{"event": "order.placed", "order_id": "order-1"}`, string(hook.Payload.Data))
		queuetest.RequireJobEnqueued(t, queue.GORM(tx),
			func(j queuetest.Job[receipt]) bool { return j.Payload.OrderID == "order-1" })
		return changed
	})
	require.ErrorIs(t, err, changed)

	queuetest.RequireJobNotEnqueued[queue.RawPayload](t, b.pool)
	for _, table := range []string{
		"shop.orders", "daybook.documents", "daybook.accounting_work_queue", "daybook.jobs",
		"daybook.job_links",
	} {
		assert.Zero(t, b.count(`SELECT count(*) FROM `+table), table)
	}

	require.NoError(t, b.place(t.Context(), anOrder("order-2")))
	require.Error(t, b.place(t.Context(), anOrder("order-2")), "an order is placed once")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.accounting_work_queue`))
	assert.Len(t, queuetest.EnqueuedJobs[queue.RawPayload](t, b.pool), 2)
}

// TestBookingIsFollowed works everything without Temporal. What is not booked is not told.
func TestBookingIsFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.place(t.Context(), anOrder("order-1")))
	// The invoice of the second one comes to contradict itself, so that it cannot be booked.
	require.NoError(t, b.place(t.Context(), anOrder("order-2")))
	_, err := b.pool.Exec(t.Context(),
		`UPDATE daybook.documents SET content = content || '{"payable": 1}' WHERE id = 'order-2'`)
	require.NoError(t, err)

	booked := queuetest.DrainAccounting(t, b.pool, queuetest.AccountingOptions{Hooks: b.hooks()})
	assert.Equal(t, queuetest.Counts{Completed: 1, Failed: 1}, booked.Counts)
	drained := queuetest.DrainJobs(t, b.pool, b.registry, queuetest.JobsOptions{Fleet: fleet})
	drained.RequireCompleted(t)

	assert.Equal(t, []string{"order-1 order.booked", "order-1 order.placed", "order-2 order.placed"}, b.events())
	assert.Len(t, b.ids, 3)
}

// TestListenerIsUnavailable lets the time pass in which the webhook is tried again.
func TestListenerIsUnavailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.webhookURL = "http://127.0.0.1:1/hooks"
	require.NoError(t, b.place(t.Context(), anOrder("order-1")))
	drained := queuetest.DrainJobs(t, b.pool, b.registry, queuetest.JobsOptions{Fleet: fleet, Advance: time.Hour})
	assert.Equal(t, queuetest.Counts{Completed: 1, Retried: 4, Failed: 1}, drained.Counts)
	hook := queuetest.RequireJobEnqueued[handlers.Webhook](t, b.pool)
	assert.Equal(t, models.JobFailed, hook.State)
	assert.Equal(t, models.CodeNetworkError, hook.ErrorCode)
}

// TestReceiptOfNoOrder cannot be mended by trying again.
func TestReceiptOfNoOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := queue.EnqueueJob(t.Context(), b.pool, org, receipt{OrderID: "none"}, queue.JobOptions{Queue: jobQueue})
	require.NoError(t, err)
	drained := queuetest.DrainJobs(t, b.pool, b.registry, queuetest.JobsOptions{Fleet: fleet, Advance: time.Hour})
	require.Len(t, drained.Jobs, 1)
	assert.Equal(t, models.CodeNotFound, drained.Jobs[0].ErrorCode)
	assert.Equal(t, 1, drained.Jobs[0].Attempts)
}

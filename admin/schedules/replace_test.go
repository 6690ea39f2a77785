package schedules_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
)

// TestReplicasThatStart replaces one schedule by six programs at once, each with its own
// connection: all succeed. Where Temporal needs more than the half minute that a program waits for
// it, the program tries again, as its error says.
func TestReplicasThatStart(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	clients := make([]client.Client, 6)
	for i := range clients {
		clients[i] = server.Client(t, namespace)
	}
	never := weekly
	never.ID, never.Crons = "never", []string{"0 6 31 2 *"}
	replace := func(c client.Client, s schedules.Schedule) (err error) {
		for range 5 {
			_, err = schedules.Replace(t.Context(), c, s, schedules.ReplaceOptions{})
			if !errors.Is(err, schedules.ErrUnavailable) {
				break
			}
		}
		return err
	}
	for range 2 {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() {
				assert.NoError(t, replace(c, weekly))
				assert.ErrorIs(t, replace(c, never), schedules.ErrInvalid)
			})
		}
		all.Wait()
	}
	s, err := schedules.Describe(t.Context(), clients[0], weekly.ID)
	require.NoError(t, err)
	assert.Equal(t, "0 6 * * MON", s.When)
}

// calls runs before each call of a client whose name ends so; an error is the call's.
func calls(t *testing.T, server *temporaltest.Server, namespace, name string, before func() error) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: server.Address, Namespace: namespace,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
				o ...grpc.CallOption,
			) error {
				if strings.HasSuffix(method, "/"+name) {
					if err := before(); err != nil {
						return err
					}
				}
				return invoke(ctx, method, req, reply, cc, o...)
			})}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestReplaceIsTriedAgain has Temporal answer late, as it does when many programs ask about one
// schedule, its own worker not ask for tasks yet, and the schedule disappear between two calls.
func TestReplaceIsTriedAgain(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	other := server.Client(t, namespace)
	for name, before := range map[string]func(call int) error{
		"DescribeSchedule": func(call int) error {
			switch call {
			case 1:
				return status.Error(codes.DeadlineExceeded, "consistent query buffer is full")
			case 2:
				return status.Error(codes.FailedPrecondition,
					"no poller seen for task queue recently, worker may be down")
			default:
				return nil
			}
		},
		"UpdateSchedule": func(call int) error {
			if call == 1 {
				return schedules.Delete(t.Context(), other, weekly.ID)
			}
			return nil
		},
	} {
		require.NoError(t, schedules.Create(t.Context(), other, weekly), name)
		n := 0
		c := calls(t, server, namespace, name, func() error { n++; return before(n) })
		created, err := schedules.Replace(t.Context(), c, weekly, schedules.ReplaceOptions{})
		assert.NoError(t, err, name)
		assert.Equal(t, name == "UpdateSchedule", created, name)
		s, err := schedules.Describe(t.Context(), other, weekly.ID)
		require.NoError(t, err, name)
		assert.NotEmpty(t, s.NextFirings, name)
		require.NoError(t, schedules.Delete(t.Context(), other, weekly.ID), name)
	}
}

// TestNotesStay pauses and resumes schedules that have a note, and that have none, and asks for
// each twice.
func TestNotesStay(t *testing.T) {
	t.Parallel()
	changed := func(is bool, err error) func(want bool) {
		return func(want bool) {
			t.Helper()
			require.NoError(t, err)
			assert.Equal(t, want, is)
		}
	}
	server := temporaltest.Shared(t)
	c := server.Client(t, server.Namespace(t))
	for id, note := range map[string]string{"noted": "what the shop's owner reads on Mondays", "plain": ""} {
		s := weekly
		s.ID, s.Note = id, note
		require.NoError(t, schedules.Create(t.Context(), c, s))
		for range 2 {
			changed(schedules.Pause(t.Context(), c, id, ""))(true)
			changed(schedules.Pause(t.Context(), c, id, ""))(false)
			paused, err := schedules.Describe(t.Context(), c, id)
			require.NoError(t, err)
			assert.True(t, paused.Paused)
			assert.Equal(t, note, paused.Note)
			assert.Nil(t, paused.NextFiring)
			assert.NotEmpty(t, paused.NextFirings)
			changed(schedules.Resume(t.Context(), c, id, ""))(true)
			changed(schedules.Resume(t.Context(), c, id, note))(false)
			resumed, err := schedules.Describe(t.Context(), c, id)
			require.NoError(t, err)
			assert.False(t, resumed.Paused)
			assert.Equal(t, note, resumed.Note)
			assert.Equal(t, paused.When, resumed.When)
			assert.JSONEq(t, string(paused.Payload), string(resumed.Payload))
		}
		changed(schedules.Pause(t.Context(), c, id, "enough"))(true)
		changed(schedules.Pause(t.Context(), c, id, "enough"))(false)
		changed(schedules.Pause(t.Context(), c, id, ""))(false)
		changed(schedules.Pause(t.Context(), c, id, "enough, more than"))(true)
		paused, err := schedules.Describe(t.Context(), c, id)
		require.NoError(t, err)
		assert.Equal(t, "enough, more than", paused.Note)
	}
}

// TestBothDays fires on the first Monday of each month.
func TestBothDays(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	c := server.Client(t, server.Namespace(t))
	s := weekly
	s.Crons, s.BothDays = []string{"0 9 1-7 * MON"}, true
	require.NoError(t, schedules.Create(t.Context(), c, s))
	listed, err := schedules.Describe(t.Context(), c, s.ID)
	require.NoError(t, err)
	require.NotEmpty(t, listed.NextFirings)
	berlin, err := time.LoadLocation(s.TimeZone)
	require.NoError(t, err)
	for _, at := range listed.NextFirings {
		assert.Equal(t, time.Monday, at.In(berlin).Weekday())
		assert.LessOrEqual(t, at.In(berlin).Day(), 7)
	}
}

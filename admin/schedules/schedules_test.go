package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/queue"
)

// What is wrong with a schedule is said before Temporal is asked.
func TestChecks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*schedules.Schedule)
		is     error
		says   string
	}{
		"no id":           {func(s *schedules.Schedule) { s.ID = "" }, schedules.ErrInvalid, "bytes without spaces"},
		"a space":         {func(s *schedules.Schedule) { s.ID = "a b" }, schedules.ErrInvalid, "bytes without spaces"},
		"no payload":      {func(s *schedules.Schedule) { s.Payload = nil }, schedules.ErrInvalid, "Payload is nil"},
		"no organization": {func(s *schedules.Schedule) { s.OrgID = "" }, queue.ErrEmptyID, ""},
		"never said":      {func(s *schedules.Schedule) { s.Crons = nil }, schedules.ErrInvalid, "one of Crons and Every"},
		"said twice": {
			func(s *schedules.Schedule) { s.Every = time.Hour }, schedules.ErrInvalid,
			"one of Crons and Every",
		},
		"too often": {
			func(s *schedules.Schedule) { s.Crons, s.Every = nil, time.Millisecond }, schedules.ErrInvalid,
			"a second at least",
		},
		"negative": {
			func(s *schedules.Schedule) { s.Crons, s.Every = nil, -time.Hour }, schedules.ErrInvalid,
			"a second at least",
		},
		"offset": {
			func(s *schedules.Schedule) { s.Offset = time.Minute }, schedules.ErrInvalid,
			"less than Every",
		},
		"jitter": {func(s *schedules.Schedule) { s.Jitter = -1 }, schedules.ErrInvalid, "Jitter"},
		"overlap": {
			func(s *schedules.Schedule) { s.Overlap = "maybe" }, schedules.ErrInvalid,
			"skip, again or allow",
		},
		"six fields": {
			func(s *schedules.Schedule) { s.Crons = []string{"@daily", "0 0 3 * * *"} },
			schedules.ErrInvalid, "seconds first",
		},
		"either or both": {
			func(s *schedules.Schedule) { s.Crons = []string{"0 9 1 * MON"} }, schedules.ErrInvalid,
			"add BothDays",
		},
		"catch-up": {func(s *schedules.Schedule) { s.CatchUp = time.Second }, schedules.ErrInvalid, "10s at least"},
		"a zone": {
			func(s *schedules.Schedule) { s.Crons, s.Every = nil, time.Hour }, schedules.ErrInvalid,
			"knows no time zone",
		},
		"parts of seconds": {
			func(s *schedules.Schedule) { s.Crons, s.TimeZone, s.Every = nil, "", 1500*time.Millisecond },
			schedules.ErrInvalid, "whole seconds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := weekly
			test.change(&s)
			err := schedules.Create(t.Context(), nil, s)
			assert.ErrorIs(t, err, test.is)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

#!/usr/bin/env bash
# go.temporal.io/server v1.29.1 (v1.32.1 has the same code): a schedule looks which day of the week a day is at its midnight.
# Where the clocks go forward at midnight, there is none, and west of Greenwich Go's time.Date gives 23:00 of the day before
# for it: Temporal takes the Sunday for a Saturday. In America/Santiago "0 9 * * SUN" does not fire on Sunday 2027-09-05, and
# "0 9 * * SAT" does. A day of the month is right, and so is a zone east of Greenwich (Africa/Cairo), where Go gives 01:00.
# A workflow's own CronSchedule errs elsewhere: it has that Sunday, but on it also fires for SAT, and it misses Friday
# 2027-04-30 in Africa/Cairo. Nothing warns.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.test/midnight

go 1.24

require go.temporal.io/server v1.29.1
MOD
cat >main.go <<'GO'
package main

import (
	"fmt"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/server/common/backoff"
	"go.temporal.io/server/service/worker/scheduler"
)

const layout = "Mon 2006-01-02 15:04"

func main() {
	builder := scheduler.NewSpecBuilder()
	for _, c := range []struct{ cron, zone, from string }{
		{"0 9 * * SUN", "America/Santiago", "2027-09-03"},
		{"0 9 * * SAT", "America/Santiago", "2027-09-03"},
		{"0 9 5 * *", "America/Santiago", "2027-09-03"},
		{"0 9 * * FRI", "Africa/Cairo", "2027-04-28"},
	} {
		spec, err := builder.NewCompiledSpec(&schedulepb.ScheduleSpec{CronString: []string{c.cron}, TimezoneName: c.zone})
		if err != nil {
			panic(err)
		}
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			panic(err)
		}
		from, err := time.ParseInLocation(time.DateOnly, c.from, zone)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s in %s\n  schedule:", c.cron, c.zone)
		for at, n := from, 0; n < 2; n++ {
			at = spec.GetNextTime("", at).Nominal
			fmt.Print(" ", at.In(zone).Format(layout), ";")
		}
		fmt.Print("\n  workflow:")
		for at, n := from, 0; n < 2; n++ {
			at = at.Add(backoff.GetBackoffForNextSchedule("CRON_TZ="+c.zone+" "+c.cron, at, at))
			fmt.Print(" ", at.In(zone).Format(layout), ";")
		}
		fmt.Println()
	}
}
GO
export GOFLAGS=-mod=mod
go run . >output
cat output
diff output - <<'SEEN'
0 9 * * SUN in America/Santiago
  schedule: Sun 2027-09-12 09:00; Sun 2027-09-19 09:00;
  workflow: Sun 2027-09-05 09:00; Sun 2027-09-12 09:00;
0 9 * * SAT in America/Santiago
  schedule: Sat 2027-09-04 09:00; Sun 2027-09-05 09:00;
  workflow: Sat 2027-09-04 09:00; Sun 2027-09-05 09:00;
0 9 5 * * in America/Santiago
  schedule: Sun 2027-09-05 09:00; Tue 2027-10-05 09:00;
  workflow: Sun 2027-09-05 09:00; Tue 2027-10-05 09:00;
0 9 * * FRI in Africa/Cairo
  schedule: Fri 2027-04-30 09:00; Fri 2027-05-07 09:00;
  workflow: Fri 2027-05-07 09:00; Fri 2027-05-14 09:00;
SEEN

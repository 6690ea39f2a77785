#!/usr/bin/env bash
# go.temporal.io/server v1.29.1 has two readers of cron texts, and the same text fires at other times in each.
# A schedule (ScheduleSpec.CronString, `temporal schedule create --cron`) asks for both day of month and weekday where both
# are restricted; a workflow's own CronSchedule (`temporal workflow start --cron`) takes either, as cron does:
# "0 9 13 * 5" is Friday the 13th there, and each 13th and each Friday here. A schedule's six fields are five and a year, so
# that the "0 0 3 * * *" of libraries with seconds (meant: 03:00 each day) fires at midnight on the 3rd of each month; it
# takes seven fields for seconds. In a schedule "#" begins a comment, so "1#2" (meant: the second Monday) is each Monday.
# A workflow's CronSchedule refuses both of these. Nothing warns.
set -euo pipefail
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module example.test/cron

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
	for _, cron := range []string{"0 9 13 * 5", "0 0 3 * * *", "0 9 * * 1#2"} {
		spec, err := builder.NewCompiledSpec(&schedulepb.ScheduleSpec{CronString: []string{cron}})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n  schedule:", cron)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 3 {
			at = spec.GetNextTime("", at).Nominal
			fmt.Print(" ", at.Format(layout), ";")
		}
		fmt.Print("\n  workflow:")
		if backoff.ValidateSchedule(cron) != nil {
			fmt.Println(" refused")
			continue
		}
		at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range 3 {
			at = at.Add(backoff.GetBackoffForNextSchedule(cron, at, at))
			fmt.Print(" ", at.Format(layout), ";")
		}
		fmt.Println()
	}
}
GO
export GOFLAGS=-mod=mod
go run . >output
cat output
diff output - <<'SEEN'
0 9 13 * 5
  schedule: Fri 2026-02-13 09:00; Fri 2026-03-13 09:00; Fri 2026-11-13 09:00;
  workflow: Fri 2026-01-02 09:00; Fri 2026-01-09 09:00; Tue 2026-01-13 09:00;
0 0 3 * * *
  schedule: Sat 2026-01-03 00:00; Tue 2026-02-03 00:00; Tue 2026-03-03 00:00;
  workflow: refused
0 9 * * 1#2
  schedule: Mon 2026-01-05 09:00; Mon 2026-01-12 09:00; Mon 2026-01-19 09:00;
  workflow: refused
SEEN

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// stepsEach is how many steps a job, or a workflow of DBOS, has.
const stepsEach = 3

func init() {
	register(scenario{
		order: 42, name: "steps", topic: topicJobs, takes: "5 minutes",
		about: "5,000 jobs of ten organizations wait, as in `jobs`. Each has three steps that do nothing and whose " +
			"results, a number each, are kept before the next one begins: of Daybook `jobs.Step`, of DBOS " +
			"`RunAsStep` in a workflow that its queue runs. DBOS's best settings are looked for first.",
		run: runStepsScenario,
	})
}

func runStepsScenario(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(5_000, 200), b.repeated(3)
	sides := []side{{n: n, drain: func(ctx context.Context) (drained, error) {
		return b.drainJobs(ctx, "three steps", organizations(), n, 0,
			func(i int) queue.Payload { return stepsJob{newBenchJob(i)} })
	}}}
	if !b.alone {
		dbos, err := tuned(ctx, b, dbosName, n, dbosVariants,
			func(ctx context.Context, s dbosSettings, n int) (drained, error) {
				return b.drainDBOS(ctx, s, n, dbosSteps)
			})
		if err != nil {
			return nil, fmt.Errorf("look for DBOS's best settings: %w", err)
		}
		sides = append(sides, dbos)
	}
	rates, _, err := contest(ctx, runs, sides)
	if err != nil {
		return nil, err
	}
	return beside(report.Row{Name: "with three steps", Unit: "jobs/s", Runs: runs}, sides, rates,
		map[string]report.Target{dbosName: report.TimesPeer(2)}), nil
}

// runSteps runs the steps of a job.
func runSteps(ctx context.Context, j *jobs.Job[stepsJob]) error {
	for i := range stepsEach {
		if _, err := jobs.Step(ctx, j, strconv.Itoa(i+1), func(context.Context) (int64, error) {
			return j.Payload.Net, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

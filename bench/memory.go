package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

func init() {
	register(scenario{
		order: 180, name: "memory", topic: topicFootprint, takes: "2 minutes",
		about: "A `daybook worker` drains 500,000 documents with batchSize 500 and concurrency 3. The peak is " +
			"`VmHWM`; the median `VmRSS` of the last third of the time is divided by that of the first.",
		skip: func(*bench) string {
			if runtime.GOOS != "linux" {
				return "it reads /proc, which only Linux has"
			}
			return ""
		},
		run: runMemory,
	})
}

func runMemory(ctx context.Context, b *bench) ([]report.Row, error) {
	n, runs := b.sized(500_000, 2_000), b.repeated(1)
	var peaks, growths []float64
	for range runs {
		err := b.withDatabase(ctx, daybookTemplate, func(d *database) error {
			if err := d.ready(ctx, organizations(), n); err != nil {
				return err
			}
			var samples []float64
			err := b.withWorkflow(ctx, d, b.fast(), func(ctx context.Context, w *worker) error {
				next := time.Now()
				err := await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
					if now := time.Now(); now.After(next) {
						next = now.Add(200 * time.Millisecond)
						rss, err := memoryOf(w.PID, "VmRSS")
						if err != nil {
							return false, 0, err
						}
						samples = append(samples, rss)
					}
					done, err := drawn(ctx, d.pool)
					return done >= int64(n), done, err
				})
				if err != nil {
					return err
				}
				peak, err := memoryOf(w.PID, "VmHWM")
				peaks = append(peaks, peak)
				if err != nil {
					return err
				}
				_, err = awaitEnds(ctx, d.pool, n)
				return err
			})
			if err != nil {
				return err
			}
			third := max(1, len(samples)/3)
			growths = append(growths, median(samples[len(samples)-third:])/median(samples[:third]))
			b.say("  peak %s MiB; median of the first third %s MiB, of the last %s MiB", report.Figure(peaks[len(peaks)-1]),
				report.Figure(median(samples[:third])),
				report.Figure(median(samples[len(samples)-third:])))
			return verify(ctx, d.pool, n, 3)
		})
		if err != nil {
			return nil, err
		}
	}
	note := fmt.Sprintf("%s documents.", report.Figure(float64(n)))
	return []report.Row{
		{
			Name: "peak of the worker", Daybook: median(peaks), Unit: "MiB", Target: report.AtMost(100), Runs: runs,
			Note: note,
		},
		{
			Name: "last third / first third", Daybook: median(growths), Unit: "ratio", Target: report.AtMost(1.1), Runs: runs,
			Note: note,
		},
	}, nil
}

// memoryOf reads a line of /proc/PID/status in MiB.
func memoryOf(pid int, name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, name)
}

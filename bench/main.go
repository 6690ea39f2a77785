// Command bench measures Daybook beside other queues, on the same PostgreSQL and in turn, and says
// whether it reaches its targets. Everything runs on a private stack in a temporary directory; see
// docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
)

// options are the command line's.
type options struct {
	scenarios, part     string
	runs, size, samples int
	smoke, json, write  bool
	// held is how long a steady load is held, instead of what the scenario says.
	held time.Duration
	// statements: tell what PostgreSQL's statements cost.
	statements bool
	// render: only the page is written, from the rows that are kept.
	render bool
	// alone leaves the peers out; best, unless it is zero, replaces the settings for throughput.
	alone              bool
	best               settings
	root, onlineRetail string
}

func main() {
	// The queues run in this process, or in others of this program. Garbage is collected as in
	// daybook worker.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if config := os.Getenv(processEnv); config != "" {
		err = runProcess(ctx, config, os.Stdout)
	} else {
		err = start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{onlineRetail: os.Getenv("ONLINE_RETAIL")}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		_, _ = fmt.Fprintln(stderr, "Usage of bench:") // an error here cannot be told either
		flags.PrintDefaults()
		_ = list(stderr)
	}
	flags.StringVar(&o.scenarios, "scenario", "",
		"the `names` of the scenarios to run, separated by commas (default all)")
	flags.StringVar(&o.part, "part", "",
		"only the parts of the scenarios jobs, organizations, reclaim and faults whose name contains `text`")
	flags.IntVar(&o.runs, "runs", 0, "how often each side of a scenario runs (default 3, or what the scenario says)")
	flags.IntVar(&o.size, "size", 0, "how many documents or jobs, instead of what the scenario says")
	flags.IntVar(&o.samples, "samples", 0, "how many samples of a latency, instead of what the scenario says")
	flags.DurationVar(&o.held, "held", 0, "how long tasks-snapshot, steady, snapshot-steady, snapshot-busy and readers "+
		"are measured, instead of what they say")
	flags.BoolVar(&o.statements, "statements", false,
		"tell what PostgreSQL's statements cost in those scenarios, by pg_stat_statements")
	flags.BoolVar(&o.smoke, "smoke", false, "a short run of everything that can be short; no target is judged")
	flags.BoolVar(&o.json, "json", false, "print each row as a line of JSON, and everything else to stderr")
	flags.BoolVar(&o.write, "write", false,
		"write the rows to docs/performance.md, which a run of all scenarios does anyway")
	flags.BoolVar(&o.render, "render", false,
		"measure nothing; write docs/performance.md anew from docs/performance.json")
	flags.BoolVar(&o.alone, "alone", false, "leave the peers out, as for tuning")
	flags.IntVar(&o.best.batch, "batch", 0,
		"batchSize where a scenario wants throughput, instead of looking for the best")
	flags.IntVar(&o.best.lanes, "concurrency", 0, "the same for concurrency")
	flags.StringVar(&o.root, "root", ".", "the `folder` of Daybook's checkout")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no option: see bench -help", flags.Arg(0))
	}
	other := o.part != "" || o.smoke || o.size > 0 || o.samples > 0 || o.alone || o.held > 0 || o.statements ||
		o.best != (settings{})
	if o.write && other {
		return errors.New("-write goes with no option that changes what is measured: the documentation says how the " +
			"figures come about")
	}
	if o.render {
		return render(o.root)
	}
	if o.scenarios == "" && !other {
		o.write = true
	}
	chosen, err := choose(o.scenarios)
	if err != nil {
		return err
	}
	rows, err := runAll(ctx, o, chosen, stdout, stderr)
	if err != nil {
		return err
	}
	return conclude(rows, o, stdout)
}

// runAll runs the scenarios one after the other on one stack. A scenario that fails does not keep
// the others from running.
func runAll(ctx context.Context, o options, chosen []scenario, stdout,
	stderr io.Writer,
) (rows []report.Row, err error) {
	b, err := newBench(ctx, o, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	var failed []error
	for _, s := range chosen {
		if s.skip != nil {
			if why := s.skip(b); why != "" {
				b.say("%s: skipped: %s", s.name, why)
				continue
			}
		}
		b.say("%s", s.name)
		got, err := s.run(ctx, b)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			b.say("%s: FAILED: %v", s.name, err)
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		for _, r := range got {
			r.Group = s.name
			if o.smoke {
				r.Target = report.Target{}
			}
			if o.json {
				if err := r.JSON(stdout); err != nil {
					return nil, err
				}
			}
			rows = append(rows, r)
		}
	}
	if o.write && len(rows) > 0 {
		if err := b.writeDown(ctx, rows); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(failed...); err != nil {
		// What was measured is shown all the same.
		return nil, errors.Join(err, report.Table(stderr, rows))
	}
	return rows, nil
}

// conclude prints the table.
func conclude(rows []report.Row, o options, stdout io.Writer) error {
	if o.json {
		return report.Table(os.Stderr, rows)
	}
	if _, err := io.WriteString(stdout, strings.Repeat("\n", min(1, len(rows)))); err != nil {
		return err
	}
	return report.Table(stdout, rows)
}

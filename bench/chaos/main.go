// Command chaos has everything go wrong at once around Daybook, for a time, and says whether what
// was acknowledged was worked, and once. It starts workers, Temporal and PostgreSQL with a standby,
// on loopback and in a directory of its own, and ends all of it. docs/reliability.md has its
// figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the command line's.
type options struct {
	lasting  time.Duration
	seed     uint64
	cluster  string
	async    bool
	only     string
	rate     int
	keep     bool
	daybook  string
	patience time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if config := os.Getenv(workerEnv); config != "" {
		err = runWorker(ctx, config)
	} else if err = ownMounts(); err == nil {
		err = start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.lasting, "lasting", 35*time.Second, "how long things go wrong")
	flags.Uint64Var(&o.seed, "seed", 0, "what goes wrong when follows from it (default a random one)")
	flags.StringVar(&o.cluster, "cluster", "", "`plain` (a standby that is promoted by hand) or patroni (Patroni, etcd and HAProxy); "+
		"default patroni where it is installed and the run lasts five minutes or longer")
	flags.BoolVar(&o.async, "async", false, "replicate asynchronously: then a failover may lose what was acknowledged")
	flags.StringVar(&o.only, "only", "", "only the kinds of trouble whose names begin with one of these `names`, separated by commas")
	flags.IntVar(&o.rate, "rate", 30, "how much is enqueued a second")
	flags.DurationVar(&o.patience, "patience", 0, "for how long the rest may not become less when the trouble is over "+
		"(default one minute, and six minutes where the trouble lasts five or longer)")
	flags.BoolVar(&o.keep, "keep", false, "keep the directory with the logs")
	flags.StringVar(&o.daybook, "daybook", "bin/daybook", "the program")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000) + 1 //nolint:gosec // it is to be repeated
	}
	long := o.lasting >= 5*time.Minute
	if o.patience == 0 {
		if o.patience = time.Minute; long {
			o.patience = taskLease + time.Minute
		}
	}
	switch o.cluster {
	case "":
		if o.cluster = clusterPlain; long && patroniLacks() == nil {
			o.cluster = clusterPatroni
		}
	case clusterPlain:
	case clusterPatroni:
		if err := patroniLacks(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("-cluster %s: want %s or %s", o.cluster, clusterPlain, clusterPatroni)
	}
	w := &world{options: o, out: stdout, log: stderr, began: time.Now()}
	defer w.stop()
	if err := w.start(ctx); err != nil {
		return w.because(ctx, err)
	}
	if err := w.suffer(ctx); err != nil {
		return w.because(ctx, err)
	}
	found, err := w.judge(ctx)
	if err != nil {
		return w.because(ctx, err)
	}
	w.print(found)
	if wrong := found.wrong(); len(wrong) > 0 {
		w.options.keep = true
		return fmt.Errorf("%s; the logs are in %s; again: make chaos%s", strings.Join(wrong, ", "), w.dir, w.again())
	}
	return nil
}

// because says that a run was interrupted, where that is why it ended.
func (w *world) because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	w.options.keep = true
	return fmt.Errorf("%w (the logs are in %s)", err, w.dir)
}

// again is what make is given to have the same go wrong at the same times.
func (w *world) again() string {
	s := fmt.Sprintf(" SEED=%d CLUSTER=%s", w.seed, w.cluster)
	if w.lasting >= time.Minute {
		s += fmt.Sprintf(" MINUTES=%g", w.lasting.Minutes())
	}
	if w.async {
		s += " ASYNC=1"
	}
	if w.only != "" {
		s += fmt.Sprintf(" ONLY='%s'", w.only)
	}
	return s
}

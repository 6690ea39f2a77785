package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/internal/moving/sample"
)

// onlineRetailDocuments is how many documents the data set has.
const onlineRetailDocuments = 25_900

func init() {
	register(scenario{
		order: 20, name: "online-retail", topic: topicDocuments, takes: "3 minutes, with ONLINE_RETAIL=path",
		about: "The 25,900 documents of UCI's \"Online Retail\" (541,909 lines) are imported by `daybook import " +
			"csv` as one organization, then posted. `ONLINE_RETAIL` names the archive.",
		skip: func(b *bench) string {
			if b.onlineRetail == "" {
				return "set ONLINE_RETAIL to the archive of UCI's \"Online Retail\" (docs/export.md)"
			}
			if _, err := os.Stat(b.onlineRetail); err != nil {
				return "ONLINE_RETAIL names no file: " + err.Error()
			}
			if b.smoke {
				return "it cannot be short"
			}
			return ""
		},
		run: runOnlineRetail,
	})
}

func runOnlineRetail(ctx context.Context, b *bench) ([]report.Row, error) {
	var posted, imported []float64
	runs := b.repeated(3)
	for range runs {
		err := b.withDatabase(ctx, daybookTemplate, func(d *database) error {
			importing, posting, err := b.onlineRetailOnce(ctx, d)
			imported, posted = append(imported, perSecond(onlineRetailDocuments, importing)),
				append(posted, perSecond(onlineRetailDocuments, posting))
			b.say("  imported in %.1f s, posted in %.1f s", importing.Seconds(), posting.Seconds())
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	row := func(name string, figure float64) report.Row {
		return report.Row{Name: name, Daybook: figure, Unit: "documents/s", Runs: runs}
	}
	rows := []report.Row{row("posting", median(posted)), row("import", median(imported))}
	rows[0].Target = report.AtLeast(4_000)
	return rows, nil
}

func (b *bench) onlineRetailOnce(ctx context.Context, d *database) (importing, posting time.Duration, err error) {
	const org = "shop"
	if err := setUp(ctx, d.pool, []string{org}, sample.OnlineRetailChart(), sample.OnlineRetailRules()); err != nil {
		return 0, 0, err
	}
	mapping := filepath.Join(b.dir, "mapping.yaml")
	if err := os.WriteFile(mapping, sample.OnlineRetailMapping(), 0o600); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	load := exec.CommandContext(ctx, b.daybook, "import", "csv", "--org", org, "--mapping", mapping, b.onlineRetail)
	load.Env = workerEnvironment(d.url, b.stack.TemporalAddress)
	if output, err := load.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("import: %w\n%s", err, output)
	}
	importing = time.Since(began)
	if err := d.quiesce(ctx); err != nil {
		return 0, 0, err
	}
	if posting, err = b.drainDaybook(ctx, d, settings{}, onlineRetailDocuments); err != nil {
		return 0, 0, err
	}
	return importing, posting, verify(ctx, d.pool, onlineRetailDocuments, 0)
}

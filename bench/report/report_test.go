package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/bench/report"
)

func TestJSONLine(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	row := report.Row{
		Group: "drain", Name: "best settings", Daybook: 17_234.56, Unit: "documents/s",
		Target: report.TimesPeer(8),
	}
	require.NoError(t, row.Beside("River", 2_000).JSON(&b))
	assert.JSONEq(t, `{"scenario":"drain: best settings","daybook":17235,"peer":2000,"unit":"documents/s","ratio":8.617,"target":"≥ 8 × peer","met":true}`, b.String())
	assert.Contains(t, b.String(), `"target":"≥ 8 × peer"`, "written as it is read")

	b.Reset()
	require.NoError(t, report.Row{Group: "idle", Daybook: 0.123456, Unit: "transactions/s"}.JSON(&b))
	assert.JSONEq(t, `{"scenario":"idle","daybook":0.1235,"peer":null,"unit":"transactions/s","ratio":null,"target":"","met":null}`, b.String())
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target  report.Target
		text    string
		daybook float64
		met     bool
	}{
		{report.TimesPeer(8), "≥ 8 × peer", 800, true},
		{report.TimesPeer(8), "≥ 8 × peer", 799, false},
		{report.AtMostTimesPeer(0.8), "≤ 0.8 × peer", 80, true},
		{report.AtMostTimesPeer(0.8), "≤ 0.8 × peer", 81, false},
		{report.AtLeast(4_000), "≥ 4,000", 4_000, true},
		{report.AtLeast(0.85), "≥ 0.85", 0.84, false},
		{report.AtMost(100), "≤ 100", 100.1, false},
		{report.AtMost(0.5), "≤ 0.5", 0.5, true},
	} {
		row := report.Row{Daybook: c.daybook, Target: c.target}.Beside("peer", 100)
		assert.Equal(t, c.text, c.target.Text)
		require.NotNil(t, row.Met())
		assert.Equal(t, c.met, *row.Met(), "%s with %v", c.text, c.daybook)
	}
	assert.Nil(t, report.Row{Daybook: 1, Target: report.TimesPeer(1)}.Met(), "there is no peer")
}

func TestFigure(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0.00", 0.123: "0.12", 12.34: "12.3", 123.4: "123", 999.7: "1,000",
		1234567: "1,234,567", 1002003: "1,002,003",
	} {
		assert.Equal(t, want, report.Figure(x))
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 40: "40", 1_234_567: "1,234,567"} {
		assert.Equal(t, want, report.Count(n))
	}
}

func TestMergeReplacesOnlyTheGroupsThatRan(t *testing.T) {
	t.Parallel()
	var f report.File
	order := []string{"drain", "idle"}
	f.Merge([]report.Row{
		{Group: "idle", Daybook: 1},
		{Group: "drain", Name: "best", Daybook: 2},
		{Group: "drain", Name: "gone", Daybook: 3},
	}, order, report.Measured{Date: "2026-01-01", Commit: "abc"})
	f.Merge([]report.Row{{Group: "drain", Name: "best", Daybook: 4}}, order,
		report.Measured{Date: "2026-01-02", Commit: "def"})
	require.Len(t, f.Records, 2)
	assert.Equal(t, "drain: best", f.Records[0].Scenario, "in the order of the scenarios")
	assert.InDelta(t, 4, f.Records[0].Daybook, 0)
	assert.Equal(t, "def", f.Records[0].Commit)
	assert.Equal(t, "idle", f.Records[1].Scenario)
	assert.Equal(t, "abc", f.Records[1].Commit)
}

func TestFilesAreWrittenAndReadBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	markdown, chart, data := filepath.Join(dir, "performance.md"), filepath.Join(dir, "performance.svg"),
		filepath.Join(dir, "performance.json")
	f, err := report.Load(data)
	require.NoError(t, err, "there is none yet")
	f.Facts = []report.Fact{{Name: "processors", Value: "2"}}
	f.Merge([]report.Row{report.Row{
		Group: "drain", Name: "<best>", Daybook: 20_000, Unit: "documents/s",
		Target: report.TimesPeer(8), Note: "a note",
	}.Beside("River", 2_000)},
		[]string{"drain"}, report.Measured{Date: "2026-01-01", Commit: "abc", Processors: "2 × fast", Flushes: 1_234})
	require.NoError(t, f.Save(data))
	read, err := report.Load(data)
	require.NoError(t, err)
	assert.Equal(t, f, read)

	explained := []report.Explained{
		{Topic: "Documents", Group: "drain", About: "Documents wait."},
		{Topic: "Documents", Group: "completed", About: "Rows are there."},
		{Topic: "Idle", Group: "idle", About: "Nothing is done."},
	}
	require.NoError(t, f.WriteMarkdown(markdown, "performance.svg", explained))
	text, err := os.ReadFile(markdown)
	require.NoError(t, err)
	assert.Contains(t, string(text), "# Performance\n", "the file is begun")
	assert.Contains(t, string(text), "### Documents\n\n    make bench SCENARIO=drain,completed WRITE=1\n\n| scenario ")
	assert.Contains(t, string(text), "**drain**. Documents wait.")
	assert.Contains(t, string(text), "### Idle\n\n    make bench SCENARIO=idle WRITE=1\n\nNot measured yet.\n")
	assert.Contains(t, string(text), "| ≥ 8 × peer: met |")
	assert.Contains(t, string(text), "\nMeasured: a: 2026-01-01, abc, 2 × fast, 1,234 flushes/s.\n")
	require.NoError(t, os.WriteFile(markdown,
		[]byte(strings.Replace(string(text), "## What they mean\n", "## What they mean\n\nThis.\n", 1)), 0o600))
	f.Records[0].Daybook = 30_000
	require.NoError(t, f.WriteMarkdown(markdown, "performance.svg", explained))
	text, err = os.ReadFile(markdown)
	require.NoError(t, err)
	assert.Contains(t, string(text), "\n\nThis.\n", "what people wrote stays")
	assert.Contains(t, string(text), "| 30,000 |")
	assert.NotContains(t, string(text), "| 20,000 |")

	require.NoError(t, f.WriteChart(chart))
	picture, err := os.ReadFile(chart)
	require.NoError(t, err)
	for d := xml.NewDecoder(bytes.NewReader(picture)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	assert.Contains(t, string(picture), "30,000 documents/s")
}

func TestMarkdownWithoutMarksIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n"), 0o600))
	require.ErrorContains(t, report.File{}.WriteMarkdown(path, "x.svg", nil), "lacks the lines")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "# Performance\n", string(text))
}

// TestBestPeerLeads: each work is named once, beside the peer that is best at it, and says so where
// Daybook is behind.
func TestBestPeerLeads(t *testing.T) {
	t.Parallel()
	f := report.File{}
	rate := report.Row{Group: "jobs", Name: "that do nothing", Daybook: 300, Unit: "jobs/s"}
	other := rate.Beside("graphile-worker", 250)
	other.Name += ", beside graphile-worker"
	hand := rate.Beside(report.ByHand, 900)
	hand.Name += ", beside SQL by hand"
	late := report.Row{Group: "faults", Name: "slowest, River's tuned client", Daybook: 0.4, Unit: "s"}.Beside("River", 0.1)
	later := report.Row{Group: "faults", Name: "slowest, River's default client", Daybook: 0.4, Unit: "s"}.Beside("River", 0.5)
	idle := report.Row{Group: "idle", Name: "transactions", Daybook: 0.5, Unit: "transactions/s"}.Beside("River", 2)
	alone := report.Row{Group: "memory", Name: "of a worker", Daybook: 90, Unit: "MiB"}
	f.Merge([]report.Row{rate.Beside("River", 100), other, hand, late, later, idle, alone},
		[]string{"jobs", "faults", "idle", "memory"}, report.Measured{Date: "2026-01-31"})
	path := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, f.WriteMarkdown(path, "chart.svg", []report.Explained{{Topic: "All", Group: "jobs"}}))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	_, lead, _ := strings.Cut(string(page), "\n---|--:|--:|---|--:\n")
	lead, _, _ = strings.Cut(lead, "\n\n")
	assert.Equal(t, `jobs: that do nothing | 300 | 250 (graphile-worker) | jobs/s | 1.20
faults: slowest | 0.40 | 0.10 (River's tuned client) | s | **0.25**
idle: transactions | 0.50 | 2.00 (River) | transactions/s | 4.00`, lead)
}

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// Record is a row as docs/performance.json keeps it.
type Record struct {
	Scenario string   `json:"scenario"`
	Group    string   `json:"group"`
	Daybook  float64  `json:"daybook"`
	Peer     *float64 `json:"peer"`
	PeerName string   `json:"peer_name,omitempty"`
	Unit     string   `json:"unit"`
	Ratio    *float64 `json:"ratio"`
	Target   string   `json:"target"`
	Met      *bool    `json:"met"`
	Runs     int      `json:"runs"`
	Note     string   `json:"note,omitempty"`
	Measured
}

// Measured is when and on what a row was measured, and what may have changed since.
type Measured struct {
	Date   string `json:"date"`
	Commit string `json:"commit"`
	// Processors are how many there were, and their name; empty: that is not known.
	Processors string `json:"processors,omitempty"`
	// Flushes is how often a second the disk flushed one page after the run; 0: that was not
	// measured.
	Flushes int `json:"flushes,omitempty"`
}

// String is what the table says.
func (m Measured) String() string {
	text := m.Date + ", " + m.Commit
	if m.Processors != "" {
		text += ", " + m.Processors
	}
	if m.Flushes > 0 {
		text += ", " + Count(m.Flushes) + " flushes/s"
	}
	return text
}

// Fact is something that a reader has to know of the machine.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// File is what docs/performance.json holds.
type File struct {
	Facts   []Fact   `json:"facts"`
	Records []Record `json:"rows"`
}

// Load reads the file; one that does not exist is empty.
func Load(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Save writes the file.
func (f File) Save(path string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(f); err != nil {
		return err
	}
	return write(path, b.Bytes())
}

// Merge puts rows in the place of those of the same groups, and leaves the others as they are.
// order names the groups in the order in which they are shown; groups that it does not name are
// dropped.
func (f *File) Merge(rows []Row, order []string, m Measured) {
	replaced := map[string]bool{}
	for _, r := range rows {
		replaced[r.Group] = true
	}
	f.Records = slices.DeleteFunc(f.Records,
		func(r Record) bool { return replaced[r.Group] || !slices.Contains(order, r.Group) })
	for _, r := range rows {
		f.Records = append(f.Records, r.record(m))
	}
	slices.SortStableFunc(f.Records,
		func(a, b Record) int { return slices.Index(order, a.Group) - slices.Index(order, b.Group) })
}

func (r Row) record(m Measured) Record {
	return Record{
		Scenario: r.Scenario(), Group: r.Group, Daybook: rounded(r.Daybook), Peer: roundedOrNil(r.Peer),
		PeerName: r.PeerName, Unit: r.Unit,
		Ratio: roundedOrNil(r.Ratio()), Target: r.Target.Text, Met: r.Met(), Runs: r.Runs, Note: r.Note, Measured: m,
	}
}

func roundedOrNil(x *float64) *float64 {
	if x == nil {
		return nil
	}
	short := rounded(*x)
	return &short
}

// write writes a file that every user may read.
func write(path string, text []byte) error {
	return os.WriteFile(path, text, 0o644) //nolint:gosec // documentation
}

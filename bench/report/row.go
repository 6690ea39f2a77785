// Package report turns measured figures into the table that the benchmarks print, into lines of
// JSON, and into the part of docs/performance.md that they write.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Row is one figure of a scenario, beside that of a peer if it has one.
type Row struct {
	// Group is the scenario's name; Name says which of its figures this is. Together they name the
	// row.
	Group, Name string
	// Daybook is the figure, in Unit.
	Daybook float64
	// Peer is the same of another program, PeerName; nil: there is none.
	Peer     *float64
	PeerName string
	Unit     string
	// Target is what the figure has to reach; the zero value: it is only told.
	Target Target
	// Runs is how many runs it is the median of.
	Runs int
	// Note says what a reader has to know beside it: settings, sizes, other figures of the same runs.
	Note string
}

// Scenario is the row's name.
func (r Row) Scenario() string {
	if r.Name == "" {
		return r.Group
	}
	return r.Group + ": " + r.Name
}

// Ratio is Daybook's figure divided by the peer's; nil where there is no peer.
func (r Row) Ratio() *float64 {
	if r.Peer == nil || *r.Peer == 0 {
		return nil
	}
	ratio := r.Daybook / *r.Peer
	return &ratio
}

// Met says whether the target is reached; nil: there is none, or it asks for a multiple of a figure
// that was not measured.
func (r Row) Met() *bool {
	if r.Target.reached == nil || r.Target.relative && r.Peer == nil {
		return nil
	}
	met := r.Target.reached(r)
	return &met
}

// Beside returns the row with a peer's figure; 0 stands for a peer that was not measured.
func (r Row) Beside(name string, figure float64) Row {
	if figure != 0 {
		r.Peer, r.PeerName = &figure, name
	}
	return r
}

// Target is what a figure has to reach.
type Target struct {
	// Text is the target in words; empty: there is none.
	Text    string
	reached func(Row) bool
	// relative: without a peer's figure nothing can be said.
	relative bool
}

// TimesPeer asks for a multiple of the peer's figure.
func TimesPeer(factor float64) Target {
	return Target{
		"≥ " + plain(factor) + " × peer", func(r Row) bool { return r.Ratio() != nil && *r.Ratio() >= factor },
		true,
	}
}

// AtMostTimesPeer asks for at most a multiple of the peer's figure.
func AtMostTimesPeer(factor float64) Target {
	return Target{
		"≤ " + plain(factor) + " × peer", func(r Row) bool { return r.Ratio() != nil && *r.Ratio() <= factor },
		true,
	}
}

// AtLeast asks for a figure of that size or more.
func AtLeast(figure float64) Target {
	return Target{"≥ " + plain(figure), func(r Row) bool { return r.Daybook >= figure }, false}
}

// AtMost asks for a figure of that size or less.
func AtMost(figure float64) Target {
	return Target{"≤ " + plain(figure), func(r Row) bool { return r.Daybook <= figure }, false}
}

// line is a row as other programs read it.
type line struct {
	Scenario string   `json:"scenario"`
	Daybook  float64  `json:"daybook"`
	Peer     *float64 `json:"peer"`
	Unit     string   `json:"unit"`
	Ratio    *float64 `json:"ratio"`
	Target   string   `json:"target"`
	Met      *bool    `json:"met"`
}

// JSON writes the row as one line.
func (r Row) JSON(w io.Writer) error {
	l := line{Scenario: r.Scenario(), Daybook: rounded(r.Daybook), Unit: r.Unit, Target: r.Target.Text, Met: r.Met()}
	if r.Peer != nil {
		peer := rounded(*r.Peer)
		l.Peer = &peer
	}
	if ratio := r.Ratio(); ratio != nil {
		short := rounded(*ratio)
		l.Ratio = &short
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(l)
}

// rounded keeps four digits, so that no figure claims more than its measurement gives.
func rounded(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-3)
	if unit >= 1 {
		return math.Round(x)
	}
	return math.Round(x/unit) / math.Round(1/unit)
}

// Figure is a number as people read it: three digits or so, thousands set off.
func Figure(x float64) string {
	switch a := math.Abs(x); {
	case a >= 999.5:
		return thousands(int64(math.Round(x)))
	case a >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	default:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
}

// Count is a whole number as people read it.
func Count(n int) string { return thousands(int64(n)) }

func thousands(n int64) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// plain is a number of a target: as short as it is.
func plain(x float64) string {
	if x == math.Trunc(x) {
		return thousands(int64(x))
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

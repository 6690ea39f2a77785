package report

import (
	_ "embed"
	"html/template"
	"strings"
)

//go:embed chart.svg.tmpl
var chartSource string

var chartTemplate = template.Must(template.New("chart").Parse(chartSource))

// The chart's measures in pixels.
const (
	chartWidth  = 880
	chartTop    = 44 // below the legend
	chartRow    = 46
	chartBars   = 340 // where bars begin
	chartLength = 400 // how long the longest bar is
)

// bar is one figure as the chart shows it.
type bar struct {
	Y, Length int
	Text      string
	Peer      bool
}

// chartGroup is a row of the table as the chart shows it.
type chartGroup struct {
	Y     int
	Label string
	Bars  []bar
}

// WriteChart draws the rows that have a peer as horizontal bars. Each row has a scale of its own,
// because their units differ: its longest bar is as long as any.
func (f File) WriteChart(path string) error {
	var groups []chartGroup
	for _, r := range f.Records {
		if r.Peer == nil {
			continue
		}
		y := chartTop + len(groups)*chartRow
		longest := max(r.Daybook, *r.Peer)
		length := func(x float64) int {
			if longest <= 0 {
				return 1
			}
			return max(1, int(x/longest*chartLength))
		}
		groups = append(groups, chartGroup{Y: y + 20, Label: r.Scenario, Bars: []bar{
			{Y: y, Length: length(r.Daybook), Text: Figure(r.Daybook) + " " + r.Unit},
			{Y: y + 18, Length: length(*r.Peer), Text: Figure(*r.Peer) + " (" + r.PeerName + ")", Peer: true},
		}})
	}
	var b strings.Builder
	err := chartTemplate.Execute(&b, map[string]any{
		"Width": chartWidth, "Height": chartTop + len(groups)*chartRow + 10, "Bars": chartBars, "Groups": groups,
	})
	if err != nil {
		return err
	}
	return write(path, []byte(b.String()))
}

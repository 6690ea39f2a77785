package console

import (
	"fmt"
	"strings"
	"time"
)

// The box that charts are drawn in; the page stretches it.
const (
	chartWidth  = 240.0
	chartHeight = 60.0
)

// chart is a small picture of figures over time. Its numbers are in a table beside it, for those
// who do not see it.
type chart struct {
	// ID is unique on the page; Title names the chart, Says what it shows in a sentence, Most the
	// highest figure.
	ID, Title, Says, Most string
	// Good and Bad are bars, the bad ones on top; Area and Line are drawn where there are no bars.
	Good, Bad, Area, Line string
	// From and To are the ends of the time.
	From, To string
}

// axis is the time that charts are drawn over: n steps from since on.
type axis struct {
	since time.Time
	step  time.Duration
	n     int
}

// index is the step that a time is in; -1: none.
func (a axis) index(t time.Time) int {
	i := int(t.Sub(a.since) / a.step)
	if t.Before(a.since) || i >= a.n {
		return -1
	}
	return i
}

// label is the time of a step as the ends of a chart show it.
func (a axis) label(i int) string {
	layout := "15:04"
	if a.step*time.Duration(a.n) > 25*time.Hour {
		layout = "2 Jan 15:04"
	}
	return a.since.Add(a.step * time.Duration(i)).UTC().Format(layout)
}

// bars draws one column a step: good below, bad on top.
func (a axis) bars(good, bad []float64) (goodPath, badPath string, most float64) {
	for i := range a.n {
		most = max(most, good[i]+bad[i])
	}
	if most == 0 {
		return "", "", 0
	}
	width := chartWidth / float64(a.n)
	var g, b strings.Builder
	for i := range a.n {
		x, top := float64(i)*width, chartHeight-good[i]/most*chartHeight
		column(&g, x, top, width, chartHeight)
		column(&b, x, top-bad[i]/most*chartHeight, width, top)
	}
	return g.String(), b.String(), most
}

// column adds a bar with a gap beside it; one that has a height is at least one unit high, so that
// few failures among many jobs are seen.
func column(path *strings.Builder, x, top, width, bottom float64) {
	if bottom-top <= 0 {
		return
	}
	if bottom-top < 1 {
		top = bottom - 1
	}
	fmt.Fprintf(path, "M%.1f %.1fh%.1fV%.1fh-%.1fz", x, top, width*0.78, bottom, width*0.78)
}

// lines draws a line from step to step, and the area below it.
func (a axis) lines(values []float64) (line, area string, most float64) {
	for _, v := range values {
		most = max(most, v)
	}
	if most == 0 {
		return "", "", 0
	}
	width := chartWidth / float64(max(1, a.n-1))
	var b strings.Builder
	for i, v := range values {
		command := "L"
		if i == 0 {
			command = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", command, float64(i)*width, chartHeight-v/most*(chartHeight-2))
	}
	line = b.String()
	return line, fmt.Sprintf("%sL%.1f %.0fL0 %.0fz", line, chartWidth, chartHeight, chartHeight), most
}

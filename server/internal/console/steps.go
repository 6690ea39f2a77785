package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/encryption"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// stepsDrawn is how many steps a time line has at most, each in a row of stepHeight pixels.
const (
	stepsDrawn = 20
	stepHeight = 27
)

// stepBar is a step on the time line: from when it was begun until it was kept last.
type stepBar struct {
	// X and Width are in hundredths of the drawing's width, Y is in pixels.
	X, Width float64
	Y        int
	// Class is "completed", or "now" for a loop that goes on.
	Class              string
	Name, Says, Moment string
}

// drawSteps adds the steps to the drawing that were kept in its time, the newest of them if there
// are too many.
func (t *timeline) drawSteps(steps []store.Step, now time.Time) {
	if t == nil {
		return
	}
	drawn := slices.DeleteFunc(slices.Clone(steps), func(s store.Step) bool {
		return s.KeptAt.Before(t.From) || s.KeptAt.After(t.To)
	})
	slices.SortStableFunc(drawn, func(a, b store.Step) int { return a.KeptAt.Compare(b.KeptAt) })
	t.MoreSteps = max(len(drawn)-stepsDrawn, 0)
	for i, s := range drawn[t.MoreSteps:] {
		from := t.place(s.StartedAt) / 10
		b := stepBar{
			X: from, Width: max(math.Round(t.place(s.KeptAt)-t.place(s.StartedAt))/10, barWidth/10.), Y: i * stepHeight, Class: "completed",
			Name: clip(s.Name, 24), Says: sayStep(&s),
			Moment: fmt.Sprintf("%s: kept %s, took %s", s.Name, ago(now, s.KeptAt), phrase.Duration(s.KeptAt.Sub(s.StartedAt))),
		}
		if !s.Done {
			b.Class = "now"
		}
		t.Steps = append(t.Steps, b)
	}
	t.StepsHeight = len(t.Steps) * stepHeight
}

// sayStep is what is known of a step besides its name and times: its attempt and, of a loop, its
// rounds and where it stands.
func sayStep(s *store.Step) string {
	says := fmt.Sprintf("attempt %d", s.Attempt)
	if s.Done && s.Times == 1 {
		return says
	}
	says += ", " + plural(s.Times, "round", "rounds")
	var stands bytes.Buffer
	if encryption.KeyOf(s.Result) == "" && json.Compact(&stands, s.Result) == nil {
		says += ", at " + clip(strings.Trim(stands.String(), `"`), 24)
	}
	if !s.Done {
		says += ", goes on"
	}
	return says
}

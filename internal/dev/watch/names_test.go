package watch

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/watching/metrics"
)

var (
	selector = regexp.MustCompile(`\b(daybook[_:][a-z0-9_:]+)\s*\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	// besides are labels that the one who scrapes adds, and the bound of a bucket.
	besides = []string{"instance", "job", "le"}
)

// expressions are what the rules and the dashboard ask Prometheus, by where they stand.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, r := range rules(t) {
		found[r.file+": "+r.Record+r.Alert+" "+r.Labels["severity"]] = r.Expr
	}
	d := load(t, "daybook-prometheus.json")
	for _, v := range d.Templating.List[1:] {
		found[d.UID+": variable "+v.Name] = v.text()
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			found[d.UID+": "+p.Title+": "+target.Expr] = target.Expr
		}
	}
	return found
}

// TestMetricsThatAreAskedForExist: rules and dashboards name metrics of the contract, by labels
// that they have; and series that a rule records.
func TestMetricsThatAreAskedForExist(t *testing.T) {
	t.Parallel()
	labels := map[string][]string{}
	for _, d := range metrics.Definitions() {
		names := []string{d.Name}
		if d.Type == metrics.Histogram {
			names = []string{d.Name + "_bucket", d.Name + "_sum", d.Name + "_count"}
		}
		for _, name := range names {
			labels[name] = d.Labels
		}
	}
	recorded := map[string]bool{}
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	used := map[string]bool{}
	for where, expr := range expressions(t) {
		for _, name := range metricsOf(expr) {
			used[name] = true
			_, exposed := labels[name]
			assert.True(t, exposed || recorded[name], "%s: there is no metric %s", where, name)
		}
		for _, m := range selector.FindAllStringSubmatch(expr, -1) {
			if recorded[m[1]] {
				continue
			}
			for _, l := range matcher.FindAllStringSubmatch(quoted.ReplaceAllString(m[2], `""`), -1) {
				assert.True(t, slices.Contains(labels[m[1]], l[1]) || slices.Contains(besides, l[1]), "%s: %s has no label %s",
					where, m[1], l[1])
			}
		}
	}
	for name := range recorded {
		assert.True(t, name == "" || used[name], "%s is recorded, and nothing reads it", name)
	}
}

// TestEachMetricIsShown: what Daybook exposes stands on the dashboard or in a rule, but for what is
// opted into.
func TestEachMetricIsShown(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, expr := range expressions(t) {
		all.WriteString(expr + "\n")
	}
	for _, d := range metrics.Definitions() {
		if !d.OptIn {
			// The text is too long to be shown, as assert.Contains would do.
			reads := strings.Contains(all.String(), d.Name)
			assert.True(t, reads, "no rule and no panel reads %s", d.Name)
		}
	}
}

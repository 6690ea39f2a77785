package watch

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

// runbookURL is where annotations lead: the runbook of the newest release.
const runbookURL = "https://github.com/daybook-dev/daybook/blob/main/docs/runbook.md#"

// anchorOf is the anchor of a finding's section.
func anchorOf(code string) string { return strings.ToLower(strings.ReplaceAll(code, "_", "-")) }

// TestEachAlertSaysWhatToDo: an alert has a severity, says what is wrong and what to do, and leads
// to its section of the runbook.
func TestEachAlertSaysWhatToDo(t *testing.T) {
	t.Parallel()
	all := sections(t)
	codes := regexp.MustCompile(`code=~"([A-Z_|]+)"`)
	severities := []string{"critical", "warning", "info"}
	for _, a := range alerts(t) {
		name := a.file + ": " + a.Alert
		assert.NotEmpty(t, a.Annotations["summary"], name)
		assert.Greater(t, len(a.Annotations["description"]), 60, "%s: a description says what to do", name)
		anchor, ours := strings.CutPrefix(a.Annotations["runbook_url"], runbookURL)
		require.True(t, ours, "%s: runbook_url is a section of the runbook", name)
		if !strings.Contains(anchor, "{{") {
			assert.Contains(t, severities, a.Labels["severity"], name)
			require.Contains(t, all, anchor, "%s: the runbook has this section", name)
			assert.Contains(t, all[anchor]+heading(anchor, a.Alert), "`"+a.Alert+"`", "%s: its section names it", name)
			continue
		}
		// An alert for several findings leads to the section of each, and takes its severity.
		assert.Equal(t, `{{ reReplaceAll "_" "-" (toLower $labels.code) }}`, anchor, name)
		m := codes.FindStringSubmatch(a.Expr)
		require.NotNil(t, m, "%s names its codes", name)
		listed := strings.Split(m[1], "|")
		for _, code := range listed {
			assert.Contains(t, health.Codes(), health.Code(code), name)
		}
		for _, code := range health.Codes() {
			anchor := anchorOf(string(code))
			require.Contains(t, all, anchor, "%s: the runbook has a section for %s", name, code)
			assert.Equal(t, slices.Contains(listed, string(code)), strings.Contains(all[anchor], "`"+a.Alert+"`"),
				"%s lists %s exactly when its section names the alert", name, code)
		}
	}
}

// heading names the alert of a section whose heading is an alert's name.
func heading(anchor, alert string) string {
	if anchor == strings.ToLower(alert) {
		return "`" + alert + "`"
	}
	return ""
}

// TestEachFindingHasItsSection: the runbook says of every code of daybook doctor what to do, under
// the anchor that the finding names.
func TestEachFindingHasItsSection(t *testing.T) {
	t.Parallel()
	all := sections(t)
	for _, code := range health.Codes() {
		body, ok := all[anchorOf(string(code))]
		if assert.True(t, ok, "%s has no section", code) {
			assert.Contains(t, body, "`"+string(code)+"`", "the section of %s names it", code)
		}
	}
}

// TestEachSectionSaysTheSame: each section says what it means, what to look at, what to do, and how
// to see that it is over, in this order; and each alert that it names exists, and stands in the
// table of alerts.
func TestEachSectionSaysTheSame(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, a := range alerts(t) {
		known[a.Alert] = true
	}
	table, _, _ := strings.Cut(read(t, "docs/runbook.md"), "\n## ")
	for name := range known {
		assert.Contains(t, table, "| `"+name+"` |", "the table of alerts")
	}
	for anchor, body := range sections(t) {
		at := -1
		for _, part := range []string{"- **Means**: ", "- **Look at**: ", "- **Do**: ", "- **Over when**: "} {
			place := strings.Index(strings.ReplaceAll(body, ":\n", ": \n"), part)
			assert.Greater(t, place, at, "%s: %s, in its order", anchor, part)
			at = place
		}
		for _, name := range regexp.MustCompile(`\bDaybook[A-Z]\w+`).FindAllString(body, -1) {
			assert.True(t, known[name], "%s: there is no alert %s", anchor, name)
		}
	}
}

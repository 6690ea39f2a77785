package watch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const root = "../../.."

// rule is one rule of Prometheus.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
	// file is where it stands.
	file string
}

// rules are all rules of deploy/prometheus.
func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []rule
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var content struct {
			Groups []struct{ Rules []rule }
		}
		require.NoError(t, yaml.Unmarshal(text, &content), file)
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				r.file = filepath.Base(file)
				all = append(all, r)
			}
		}
	}
	return all
}

// alerts are the rules that fire.
func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(rules(t), func(r rule) bool { return r.Alert == "" })
}

var (
	quoted     = regexp.MustCompile(`"[^"]*"`)
	ofDaybook  = regexp.MustCompile(`\bdaybook[_:][a-z0-9_:]+`)
	ofSections = regexp.MustCompile(`(?m)^### (.+)$`)
)

// metricsOf are the names of Daybook's metrics and recorded series in an expression.
func metricsOf(expr string) []string {
	return ofDaybook.FindAllString(quoted.ReplaceAllString(expr, `""`), -1)
}

// read is the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// sections are the sections of the runbook by the anchor of their heading, as GitHub makes it.
func sections(t *testing.T) map[string]string {
	t.Helper()
	text := read(t, "docs/runbook.md")
	found := map[string]string{}
	places := ofSections.FindAllStringSubmatchIndex(text, -1)
	for i, m := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		body, _, _ := strings.Cut(text[m[1]:end], "\n## ")
		anchor := strings.ReplaceAll(strings.ToLower(text[m[2]:m[3]]), " ", "-")
		require.NotContains(t, slices.Collect(maps.Keys(found)), anchor, "a heading that stands twice")
		found[anchor] = body
	}
	require.NotEmpty(t, found)
	return found
}

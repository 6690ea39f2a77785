package chart

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// packed makes the package that is published, and returns its path. make test-chart names Helm.
func packed(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	helm(t, "package", deploy+"/helm/daybook", "--destination", folder)
	found, err := filepath.Glob(folder + "/daybook-*.tgz")
	if err != nil || len(found) != 1 {
		t.Fatalf("helm package made %v (%v)", found, err)
	}
	return found[0]
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	program := os.Getenv("HELM")
	if program == "" {
		t.Fatal("HELM does not name Helm's program: run make test-chart")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

// object is what is read of what the chart renders.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     map[string]any
	Data     map[string]string
}

func rendered(t *testing.T) []object {
	t.Helper()
	text := helm(t, "template", "daybook", packed(t), "--kube-version", "1.30", "--values", deploy+"/helm/daybook/ci/full.yaml")
	var all []object
	for part := range strings.SplitSeq(text, "\n---\n") {
		var o object
		// A text at the end of an object may end with the newline that the separator began with.
		if err := yaml.Unmarshal([]byte(part+"\n"), &o); err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if o.Kind != "" {
			all = append(all, o)
		}
	}
	return all
}

// files are those that match a pattern, by the names of their objects or keys.
func files(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	all := map[string][]byte{}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = text
	}
	return all
}

// The chart has no rules and no dashboards of its own: those that it renders, once packed, are those of deploy/.
func TestRulesAndDashboardsAreThoseOfDeploy(t *testing.T) {
	rules, dashboards := files(t, deploy+"/prometheus/*.yml"), files(t, deploy+"/grafana/dashboards/*.json")
	for _, o := range rendered(t) {
		switch {
		case o.Kind == "PrometheusRule":
			name := strings.TrimPrefix(o.Metadata.Name, "daybook-") + ".yml"
			var want map[string]any
			if err := yaml.Unmarshal(rules[name], &want); err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 || !reflect.DeepEqual(o.Spec, want) {
				t.Errorf("the rule %s is not what deploy/prometheus/%s says", o.Metadata.Name, name)
			}
			delete(rules, name)
		case o.Kind == "ConfigMap" && strings.HasSuffix(o.Metadata.Name, "-dashboards"):
			for name, text := range o.Data {
				if want, ok := dashboards[name]; !ok || text != string(want) {
					t.Errorf("the dashboard %s is not that of deploy/grafana/dashboards", name)
				}
				delete(dashboards, name)
			}
		}
	}
	if len(rules)+len(dashboards) > 0 {
		t.Errorf("the chart leaves out %d files of rules and %d dashboards", len(rules), len(dashboards))
	}
}

func TestThePackageHasNoTests(t *testing.T) {
	f, err := os.Open(packed(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	list := tar.NewReader(unzipped)
	for {
		header, err := list.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(header.Name, "/tests/") || strings.Contains(header.Name, "/ci/") || strings.HasSuffix(header.Name, ".md") {
			t.Errorf("%s is packed", header.Name)
		}
	}
}

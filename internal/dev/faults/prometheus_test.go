package faults

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// series is a metric with labels, and which of its values show a fault.
type series struct {
	name   string
	labels map[string]string
	holds  func(v float64) bool
}

func above(limit float64, name string, labels ...string) series {
	return series{name, pairs(labels), func(v float64) bool { return v > limit }}
}

func below(limit float64, name string, labels ...string) series {
	return series{name, pairs(labels), func(v float64) bool { return v < limit }}
}

func pairs(labels []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(labels); i += 2 {
		m[labels[i]] = labels[i+1]
	}
	return m
}

var (
	sample = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? (\S+)`)
	label  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
)

// shows reports whether a process of the installation exposes the series with such a value.
func (b *bundle) shows(s series) bool {
	for _, address := range b.metricsOf {
		text, err := b.get(address)
		if err != nil {
			continue // its process was killed
		}
		for line := range strings.Lines(text) {
			m := sample.FindStringSubmatch(line)
			if m == nil || m[1] != s.name {
				continue
			}
			labels := map[string]string{}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				labels[l[1]] = l[2]
			}
			if v, err := strconv.ParseFloat(m[3], 64); err == nil && within(s.labels, labels) && s.holds(v) {
				return true
			}
		}
	}
	return false
}

// within reports whether all labels that are wanted are there.
func within(want, have map[string]string) bool {
	for name, v := range want {
		if have[name] != v {
			return false
		}
	}
	return true
}

// prometheus is a real server with the rules of deploy/prometheus, which are not made to wait.
type prometheus struct{ address string }

// sooner are thresholds of alerts that an injected fault would reach too late, and what stands in
// their place.
var sooner = map[string][2]string{
	"DaybookWorkflowPaused": {"> 900", "> 0"},
	"DaybookOldSnapshot":    {"> 600", "> 2"},
}

// startPrometheus has a server scrape the processes every second; nil: the program is not to be had
// on this machine.
func startPrometheus(t *testing.T, targets map[string]string) *prometheus {
	t.Helper()
	const program = "../../../scripts/prometheus.sh"
	if out, err := exec.CommandContext(t.Context(), program, "prometheus", "--version").CombinedOutput(); err != nil {
		t.Logf("no Prometheus, so no alert is looked at: %s", out)
		return nil
	}
	dir := t.TempDir()
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{"*.rules.yml"},
	}
	var hosts []string
	for _, address := range targets {
		u, err := url.Parse(address)
		require.NoError(t, err)
		hosts = append(hosts, u.Host)
	}
	config["scrape_configs"] = []any{map[string]any{
		"job_name":       "daybook",
		"static_configs": []any{map[string]any{"targets": hosts}},
	}}
	write(t, filepath.Join(dir, "prometheus.yml"), config)
	for _, name := range []string{"recording", "works", "queues"} {
		write(t, filepath.Join(dir, name+".rules.yml"), impatient(t, "../../../deploy/prometheus/"+name+".yml"))
	}
	p := &prometheus{address: "http://127.0.0.1:" + closedPort(t)}
	cmd := exec.CommandContext(t.Context(), program, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(p.address, "http://"), "--log.level=error")
	logs := &logged{done: true}
	cmd.Stdout, cmd.Stderr = logs, logs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Prometheus logged:\n%s", logs.tail())
		}
	})
	return p
}

// impatient are the rules of a file, evaluated every second, whose alerts fire at once.
func impatient(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var content struct {
		Groups []map[string]any `yaml:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &content))
	for _, g := range content.Groups {
		g["interval"] = "1s"
		rules, _ := g["rules"].([]any)
		require.NotEmpty(t, rules)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			delete(rule, "for")
			name, _ := rule["alert"].(string)
			if change, ok := sooner[name]; ok {
				expr, _ := rule["expr"].(string)
				require.Contains(t, expr, change[0], name)
				rule["expr"] = strings.Replace(expr, change[0], change[1], 1)
			}
		}
	}
	return map[string]any{"groups": content.Groups}
}

func write(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
}

// firing reports whether an alert with these labels fires.
func (b *bundle) firing(labels map[string]string) (bool, error) {
	text, err := b.get(b.prometheus.address + "/api/v1/alerts")
	if err != nil {
		return false, err
	}
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return false, err
	}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" && within(labels, a.Labels) {
			return true, nil
		}
	}
	return false, nil
}

// fires waits until an alert fires.
func (b *bundle) fires(labels map[string]string) {
	b.t.Helper()
	if b.prometheus == nil {
		return
	}
	assert.Eventually(b.t, func() bool { yes, err := b.firing(labels); return err == nil && yes }, patience,
		200*time.Millisecond, "%v fires", labels)
}

// over waits until an alert has cleared.
func (b *bundle) over(labels map[string]string) {
	b.t.Helper()
	if b.prometheus == nil {
		return
	}
	assert.Eventually(b.t, func() bool { yes, err := b.firing(labels); return err == nil && !yes }, patience,
		200*time.Millisecond, "%v clears", labels)
}

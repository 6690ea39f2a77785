package faults

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/watching/health"
)

// fault is one thing that goes wrong, and how each means of watching names it.
type fault struct {
	name string
	// finding is what daybook doctor says.
	finding func(f health.Finding) bool
	// series is a metric that shows it, with the labels that have to be there; holds says which
	// values do.
	series series
	// alert fires, with these labels.
	alert map[string]string
	// page are words of what the console's overview says of it.
	page []string
}

// code finds a finding by its code, and by kind, type and error code unless they are empty.
func code(c health.Code, kind, kindOfJob, errorCode string) func(health.Finding) bool {
	return func(f health.Finding) bool {
		return f.Code == c && (kind == "" || slices.Contains(f.AboutKinds(), kind)) &&
			(kindOfJob == "" || f.Type == kindOfJob) && (errorCode == "" || f.ErrorCode == errorCode)
	}
}

// TestTenFaultsAreNamed injects ten faults into an installation, and finds each of them named,
// whichever of daybook doctor, the metrics, the alerts or the console is looked at.
func TestTenFaultsAreNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.runs()

	snapshot := b.manyFaults()
	defer func() { _ = snapshot.Rollback(t.Context()) }()
	b.named(
		fault{
			name: "rule missing", finding: code(health.FailedJobs, "accounting", "", "NO_MATCHING_RULE"),
			series: above(0, "daybook_job_outcomes_total", "kind", "accounting", "outcome", "failed", "code",
				"NO_MATCHING_RULE"),
			alert: map[string]string{"alertname": "DaybookJobFailed", "kind": "accounting", "code": "NO_MATCHING_RULE"},
			page:  []string{"FAILED_JOBS", "NO_MATCHING_RULE"},
		},
		fault{
			name: "closed period", finding: code(health.FailedJobs, "accounting", "", "PERIOD_CLOSED"),
			series: above(0, "daybook_job_outcomes_total", "kind", "accounting", "outcome", "failed", "code",
				"PERIOD_CLOSED"),
			alert: map[string]string{"alertname": "DaybookJobFailed", "kind": "accounting", "code": "PERIOD_CLOSED"},
			page:  []string{"FAILED_JOBS", "PERIOD_CLOSED"},
		},
		fault{
			name: "poison payload", finding: code(health.FailedJobs, "jobs", "email", "PAYLOAD_INVALID"),
			series: above(0, "daybook_job_outcomes_total", "kind", "jobs", "type", "email", "outcome", "failed", "code",
				"PAYLOAD_INVALID"),
			alert: map[string]string{
				"alertname": "DaybookJobFailed", "kind": "jobs", "type": "email",
				"code": "PAYLOAD_INVALID",
			},
			page: []string{"FAILED_JOBS", "email", "PAYLOAD_INVALID"},
		},
		fault{
			name: "mail server unavailable", finding: code(health.RetryingJobs, "jobs", "email", "NETWORK_ERROR"),
			series: above(5, "daybook_job_outcomes_total", "kind", "jobs", "type", "email", "outcome", "retried", "code",
				"NETWORK_ERROR"),
			alert: map[string]string{"alertname": "DaybookRetries", "kind": "jobs", "type": "email", "code": "NETWORK_ERROR"},
			page:  []string{"RETRYING_JOBS", "email", "NETWORK_ERROR"},
		},
		fault{
			name: "handler missing", finding: code(health.HandlerMissing, "jobs", "shrink", ""),
			series: above(0, "daybook_queue_unhandled_jobs", "kind", "jobs", "type", "shrink"),
			alert:  map[string]string{"alertname": "DaybookHandlerMissing", "kind": "jobs", "type": "shrink"},
			page:   []string{"HANDLER_MISSING", "shrink"},
		},
		fault{
			name: "cap reached", finding: code(health.CapReached, "jobs", "", ""),
			series: above(0, "daybook_queue_held_back_jobs", "kind", "jobs", "reason", "capped"),
			alert:  map[string]string{"alertname": "DaybookCapReached", "kind": "jobs"},
			page:   []string{"CAP_REACHED", "capped"},
		},
	)
	b.mended()

	b.ok("workflow", "pause", "--kind", "jobs")
	b.named(fault{
		name: "workflow paused", finding: code(health.WorkflowPaused, "jobs", "", ""),
		series: above(0, "daybook_workflow_paused_seconds", "kind", "jobs"),
		alert:  map[string]string{"alertname": "DaybookWorkflowPaused", "kind": "jobs"},
		page:   []string{"WORKFLOW_PAUSED", "jobs"},
	})
	b.ok("workflow", "resume", "--kind", "jobs")
	b.over(map[string]string{"alertname": "DaybookWorkflowPaused"})

	b.temporal.set(true)
	b.named(fault{
		name: "Temporal unavailable", finding: code(health.TemporalUnavailable, "", "", ""),
		series: below(1, "daybook_temporal_up"),
		alert:  map[string]string{"alertname": "DaybookTemporalDown"},
		page:   []string{"TEMPORAL_UNAVAILABLE"},
	})
	b.temporal.set(false)
	b.over(map[string]string{"alertname": "DaybookTemporalDown"})

	b.kill(b.worker)
	b.named(fault{
		name: "worker killed", finding: code(health.NoWorker, "jobs", "", ""),
		series: above(0, "daybook_finding", "code", "NO_WORKER", "kind", "jobs"),
		alert:  map[string]string{"alertname": "DaybookNoWorker", "kind": "jobs"},
		page:   []string{"NO_WORKER", "jobs"},
	})
	b.fires(map[string]string{"alertname": "DaybookProcessDown"})
	// The overview names a snapshot from the age of a minute on, which it has by now.
	b.named(fault{
		name: "snapshot held", finding: code(health.OldSnapshot, "", "", ""),
		series: above(2, "daybook_oldest_snapshot_age_seconds"),
		alert:  map[string]string{"alertname": "DaybookOldSnapshot"},
		page:   []string{"OLD_SNAPSHOT"},
	})
	b.exec(`SELECT pg_terminate_backend($1)`, snapshot.Conn().PgConn().PID())
	b.over(map[string]string{"alertname": "DaybookOldSnapshot"})
	b.worker, _ = b.start("showing metrics", "worker", "--metrics-listen",
		strings.TrimSuffix(strings.TrimPrefix(b.metricsOf["worker"], "http://"), "/metrics"))
	b.gone("worker started", code(health.NoWorker, "", "", ""))
	b.over(map[string]string{"alertname": "DaybookNoWorker"})
	b.over(map[string]string{"alertname": "DaybookProcessDown"})
}

// mended does what the runbook says about the faults that a person mends, and waits until they are
// over.
func (b *bundle) mended() {
	b.t.Helper()
	b.ok("rules", "apply", "../../moving/sample/rules.yaml", "--org", "norule")
	b.ok("periods", "open", "--org", "closed", "--month", "2026-01")
	b.ok("jobs", "cancel", "--all", "--type", "email", "--code", "PAYLOAD_INVALID")
	b.ok("jobs", "cancel", "--all", "--type", "shrink", "--state", "pending")
	b.ok("organizations", "cap", "--org", "capped", "--none")
	b.gone("rule applied", code(health.FailedJobs, "accounting", "", "NO_MATCHING_RULE"))
	b.gone("period opened", code(health.FailedJobs, "accounting", "", "PERIOD_CLOSED"))
	b.gone("poison payload cancelled", code(health.FailedJobs, "jobs", "email", "PAYLOAD_INVALID"))
	b.gone("jobs without a handler cancelled", code(health.HandlerMissing, "jobs", "shrink", ""))
	b.gone("cap removed", code(health.CapReached, "", "", ""))
	b.over(map[string]string{"alertname": "DaybookHandlerMissing"})
	b.over(map[string]string{"alertname": "DaybookCapReached"})
}

// gone waits until daybook doctor finds something no more.
func (b *bundle) gone(name string, finding func(health.Finding) bool) {
	b.t.Helper()
	assert.Eventually(b.t, func() bool { return !slices.ContainsFunc(b.doctor(), finding) }, patience,
		200*time.Millisecond, "%s, and daybook doctor still finds it", name)
}

// manyFaults injects what does not stand in another fault's way, and returns the transaction that
// holds the snapshot.
func (b *bundle) manyFaults() pgx.Tx {
	b.t.Helper()
	// A transaction that keeps an old state of the database in sight.
	tx, err := b.Pool.BeginTx(b.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(b.t, err)
	_, err = tx.Exec(b.t.Context(), `SELECT count(*) FROM daybook.jobs`)
	require.NoError(b.t, err)

	// No rule for invoices, and a closed January.
	source, err := os.ReadFile("../../moving/sample/rules.yaml")
	require.NoError(b.t, err)
	const sale = `doc.type == "invoice" && doc.direction == "out"`
	require.Contains(b.t, string(source), sale)
	rules := filepath.Join(b.t.TempDir(), "rules.yaml")
	require.NoError(b.t, os.WriteFile(rules, []byte(strings.Replace(string(source), sale, "false && "+sale, 1)), 0o600))
	for org, rules := range map[string]string{"norule": rules, "closed": "../../moving/sample/rules.yaml"} {
		b.ok("accounts", "import", "../../moving/sample/chart.csv", "--org", org, "--create")
		b.ok("rules", "apply", rules, "--org", org)
	}
	b.ok("periods", "add", "--org", "closed", "--month", "2026-01")
	b.ok("periods", "close", "--org", "closed", "--month", "2026-01")
	documents := filepath.Join(b.t.TempDir(), "documents.ndjson")
	require.NoError(b.t, os.WriteFile(documents, []byte(invoice("norule")+"\n"+invoice("closed")+"\n"), 0o600))
	b.ok("import", "ndjson", documents, "--create")

	// Mail to a server that is not there, a message that none can send, a type without a handler, and
	// an organization at its cap whose webhook does not answer.
	b.exec(`SELECT daybook.enqueue_job('shop', 'email', '{"to": ["ada@example.com"], "subject": "s", "text": "t"}') FROM generate_series(1, 8)`)
	b.exec(`SELECT daybook.enqueue_job('shop', 'email', '{"to": 5}'), daybook.enqueue_job('shop', 'shrink', '{}')`)
	answer := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	b.t.Cleanup(func() { close(answer); slow.Close() })
	b.exec(`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('capped', 1)`)
	b.exec(`SELECT daybook.enqueue_job('capped', 'webhook', jsonb_build_object('url', $1::text, 'data', n)) FROM generate_series(1, 3) n`, slow.URL)
	return tx
}

// invoice is a document of an organization, in the form that daybook import reads.
func invoice(org string) string {
	text, err := json.Marshal(map[string]any{
		"org_id": org, "id": "invoice-1", "type": "invoice", "direction": "out", "currency": "EUR",
		"issue_date": "2026-01-12",
		"content": map[string]any{
			"number": "1", "country": "DE",
			"lines": []any{map[string]any{
				"kind": "item", "description": "Goods", "net": 10000, "rate": 19,
				"category": "VAT",
			}},
			"taxes": []any{map[string]any{"category": "VAT", "rate": 19, "base": 10000, "amount": 1900}}, "total": 11900,
			"payable": 11900,
		},
	})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// runs starts a worker, a server and the workflows, and waits until a job is done.
func (b *bundle) runs() {
	b.t.Helper()
	var address string
	b.worker, address = b.start("showing metrics", "worker", "--metrics-listen", "127.0.0.1:0")
	b.metricsOf["worker"] = "http://" + address + "/metrics"
	shown := closedPort(b.t)
	_, address = b.start("serving", "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:"+shown)
	b.console, b.metricsOf["serve"] = "http://"+address+"/", "http://127.0.0.1:"+shown+"/metrics"
	b.ok("workflow", "start")
	b.signIn()
	b.prometheus = startPrometheus(b.t, b.metricsOf)
}

// named waits until every means of watching names each fault.
func (b *bundle) named(faults ...fault) {
	b.t.Helper()
	began := time.Now()
	for _, f := range faults {
		assert.Eventually(b.t, func() bool {
			return slices.ContainsFunc(b.doctor(), f.finding)
		}, patience, 200*time.Millisecond, "%s: daybook doctor", f.name)
		b.t.Logf("%s: doctor names it after %s", f.name, time.Since(began).Round(100*time.Millisecond))
		assert.Eventually(b.t, func() bool { return b.shows(f.series) }, patience, 200*time.Millisecond, "%s: metrics",
			f.name)
		b.t.Logf("%s: metrics name it after %s", f.name, time.Since(began).Round(100*time.Millisecond))
		b.fires(f.alert)
		b.t.Logf("%s: an alert fires after %s", f.name, time.Since(began).Round(100*time.Millisecond))
		assert.Eventually(b.t, func() bool { return b.overviewSays(f.page) }, patience, 200*time.Millisecond,
			"%s: the console's overview", f.name)
		b.t.Logf("%s: the overview names it after %s", f.name, time.Since(began).Round(100*time.Millisecond))
	}
}

// overviewSays reports whether one finding on the console's first page has all the words.
func (b *bundle) overviewSays(words []string) bool {
	page, err := b.get(b.console + "console/")
	if err != nil {
		return false
	}
	_, list, _ := strings.Cut(page, `id="findings"`)
	list, _, _ = strings.Cut(list, `id="queues"`)
	for finding := range strings.SplitSeq(list, "<li") {
		all := true
		for _, w := range words {
			all = all && strings.Contains(finding, w)
		}
		if all {
			return true
		}
	}
	return false
}

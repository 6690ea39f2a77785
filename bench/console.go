package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/bench/report"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/watching/sampler"
	"github.com/daybook-dev/daybook/server"
)

const topicConsole = "The console"

func init() {
	register(scenario{
		order: 200, name: "console", topic: topicConsole, takes: "5 minutes",
		about: "5,000,000 jobs of 20 types and a thousand organizations: 1 % dead letters of five codes, 1 % " +
			"due, the others completed; a week of history. A client asks for one page after the other; the " +
			"time is from the request to the last byte.",
		run: runConsole,
	})
}

// consolePages are what is asked for. Only the overview has a target.
var consolePages = []struct {
	name, path string
	target     float64
}{
	{"overview of the last hour", "", 50},
	{"overview of the last day", "?range=day", 50},
	{"overview of the last week", "?range=week", 50},
	{"jobs", "jobs", 0},
	{"failed jobs with an error code", "jobs?state=failed&code=NETWORK_ERROR", 0},
	{"dead letters", "dead-letters", 0},
}

func runConsole(ctx context.Context, b *bench) (rows []report.Row, err error) {
	n, samples := b.sized(5_000_000, 20_000), b.sampled(100, 3)
	err = b.withDatabase(ctx, daybookTemplate, func(d *database) error {
		if err := fillConsole(ctx, d, n); err != nil {
			return err
		}
		if err := sampler.New(sampler.Options{Pool: d.pool, Name: "bench"}).Sample(ctx); err != nil {
			return err
		}
		pages, err := server.New(ctx, server.Options{Pool: d.pool})
		if err != nil {
			return err
		}
		defer func() { _ = pages.Close() }()
		serving := httptest.NewServer(pages)
		defer serving.Close()
		client, err := signIn(ctx, d, serving.URL)
		if err != nil {
			return err
		}
		for _, page := range consolePages {
			delays, size, err := timePage(ctx, client, serving.URL+server.ConsoleRoot+page.path, samples)
			if err != nil {
				return err
			}
			b.sayDelays(page.name, delays)
			row := report.Row{
				Name: page.name + ", p95", Daybook: percentile(delays, 95), Unit: "ms", Runs: 1,
				Note: fmt.Sprintf("%s jobs, %d requests, %d KB a page; p50 %s, slowest %s ms.", report.Figure(float64(n)),
					samples, size>>10,
					report.Figure(percentile(delays, 50)), report.Figure(percentile(delays, 100))),
			}
			if page.target > 0 {
				row.Target = report.AtMost(page.target)
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, err
}

// fillConsole writes jobs, and a week of history of their types.
func fillConsole(ctx context.Context, d *database, n int) error {
	const part = 500_000
	const write = `
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, created_at, updated_at, ready_at, first_ready_at, last_attempted_at, finished_at, last_error, last_error_code)
SELECT 'org-' || i % 1000, 'type-' || i % 20, '{}', state::daybook.job_state, CASE state WHEN 'pending' THEN 0 ELSE 1 END, at, at, at, at, CASE state WHEN 'pending' THEN NULL ELSE at END,
       CASE state WHEN 'pending' THEN NULL ELSE at + interval '1 second' END, CASE state WHEN 'failed' THEN 'it failed' END,
       CASE state WHEN 'failed' THEN (ARRAY['NETWORK_ERROR', 'TIMEOUT', 'UPSTREAM_5XX', 'HANDLER_ERROR', 'PAYLOAD_INVALID'])[1 + i / 100 % 5] END
  FROM (SELECT i, CASE i % 100 WHEN 7 THEN 'failed' WHEN 8 THEN 'pending' ELSE 'completed' END AS state,
               now() - interval '90 days' * (1 - i::float8 / $3) - interval '1 minute' AS at FROM generate_series($1::bigint, $2::bigint) i) s`
	for first := 1; first <= n; first += part {
		if _, err := d.pool.Exec(ctx, write, first, min(first+part-1, n), float64(n)); err != nil {
			return fmt.Errorf("write jobs: %w", err)
		}
	}
	const history = `
INSERT INTO daybook.history (seconds, at, kind, type, outcome, code, count, waited_seconds, took_seconds, waited, took)
SELECT s.seconds, at, 'jobs', 'type-' || t, o.outcome, o.code, 40, 4, 2, counts.buckets, counts.buckets
  FROM (VALUES (60, interval '2 days'), (600, interval '8 days'), (3600, interval '31 days')) AS s (seconds, kept)
 CROSS JOIN LATERAL generate_series(date_bin(make_interval(secs => s.seconds), now() - s.kept, '2000-01-01 00:00:00+00'), now(), make_interval(secs => s.seconds)) AS at
 CROSS JOIN generate_series(0, 19) AS t
 CROSS JOIN (VALUES ('completed', ''), ('failed', 'NETWORK_ERROR'), ('retried', 'TIMEOUT')) AS o (outcome, code)
 CROSS JOIN (SELECT array_agg(2::bigint) AS buckets FROM generate_series(1, $1)) AS counts`
	if _, err := d.pool.Exec(ctx, history, len(figures.Bounds())+1); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return d.quiesce(ctx)
}

// signIn returns a client that is signed in with a token for all organizations.
func signIn(ctx context.Context, d *database, address string) (*http.Client, error) {
	_, secret, err := tokens.Create(ctx, d.pool, tokens.NewToken{Name: "bench", Scopes: tokens.Scopes()})
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Jar: jar}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+server.ConsoleRoot+"sign-in",
		strings.NewReader(url.Values{"token": {secret}}.Encode()))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	_, err = readAll(client, r)
	return client, err
}

// timePage returns how long a page took, in milliseconds, and how long it is. What comes first in a
// process, and the check of health that a page waits for after a pause, is not counted.
func timePage(ctx context.Context, client *http.Client, address string,
	samples int,
) (delays []float64, size int, err error) {
	const warmUp = 3
	for i := range warmUp + samples {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, 0, err
		}
		began := time.Now()
		if size, err = readAll(client, r); err != nil {
			return nil, 0, err
		}
		if i >= warmUp {
			delays = append(delays, milliseconds(time.Since(began)))
		}
	}
	return delays, size, nil
}

// readAll reads an answer to its end, and fails unless it is a page.
func readAll(client *http.Client, r *http.Request) (int, error) {
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers with status %d: %.300s", r.URL.Path, answer.StatusCode, text)
	}
	return len(text), err
}

package watch

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/migrations"
)

// dashboard is the part of a dashboard of Grafana that is checked.
type dashboard struct {
	UID        string
	Title      string
	Tags       []string
	Templating struct{ List []variable }
	Panels     []panel
}

type variable struct {
	Name, Type string
	// Query is a text, or an object that has the text as its query.
	Query any
}

func (v variable) text() string {
	if object, ok := v.Query.(map[string]any); ok {
		return fmt.Sprint(object["query"])
	}
	return fmt.Sprint(v.Query)
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	Targets                  []target
	GridPos                  struct{ H, W, X, Y int }
}

type target struct {
	Expr   string
	RawSQL string `json:"rawSql"`
	Format string
}

// load reads a dashboard.
func load(t *testing.T, name string) dashboard {
	t.Helper()
	var d dashboard
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/grafana/dashboards/"+name)), &d), name)
	return d
}

// TestDashboardsAreComplete: each panel has a place of its own, a title, and a sentence that says
// what it shows; each query has a data source that can be chosen.
func TestDashboardsAreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy/grafana/dashboards/*.json"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	uids := map[string]bool{}
	for _, file := range files {
		d := load(t, filepath.Base(file))
		assert.False(t, uids[d.UID], "uid %s stands twice", d.UID)
		uids[d.UID] = true
		assert.Equal(t, strings.TrimSuffix(filepath.Base(file), ".json"), d.UID)
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			assert.False(t, ids[p.ID], "%s: id %d stands twice", p.Title, p.ID)
			ids[p.ID] = true
			assert.NotEmpty(t, p.Title)
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					assert.Empty(t, cells[[2]int{x, y}], "%s covers another panel", p.Title)
					cells[[2]int{x, y}] = p.Title
				}
			}
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
			if p.Type == "row" {
				continue
			}
			assert.NotEmpty(t, p.Description, p.Title)
			assert.NotEmpty(t, p.Targets, p.Title)
			assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		}
		provided := read(t, "deploy/grafana/provisioning/datasources/daybook.yml")
		require.Equal(t, "datasource", d.Templating.List[0].Type)
		assert.Contains(t, provided, "type: "+d.Templating.List[0].text()+"\n", "%s: its data source is provided", d.Title)
	}
}

// macros writes a query as Grafana sends it, for a span of time that ends now.
func macros(query string, span time.Duration) string {
	moment := func(at time.Time) string { return "'" + at.UTC().Format(time.RFC3339) + "'" }
	from, to := moment(time.Now().Add(-span)), moment(time.Now().Add(time.Minute))
	query = regexp.MustCompile(`\$__timeFilter\(([\w.]+)\)`).ReplaceAllString(query, "$1 BETWEEN "+from+" AND "+to)
	return strings.NewReplacer("$__timeFrom()", from, "$__timeTo()", to, "$kind",
		"'accounting', 'jobs', 'tasks'").Replace(query)
}

// TestDashboardOfPostgreSQL runs each query of the dashboard on a database with every migration, as
// the role that the documentation names, over spans that read rows of each length. All find what
// was sampled, but for the lists that may be empty.
func TestDashboardOfPostgreSQL(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	sampled(t, db)
	reader := db.As(t, "daybook_reader")
	mayBeEmpty := []string{"Failed last", "Paused organizations"}
	d := load(t, "daybook-postgresql.json")
	for _, v := range d.Templating.List[1:] {
		rows, err := reader.Query(t.Context(), v.text())
		require.NoError(t, err, v.Name)
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, v.Name)
		assert.Equal(t, []string{"accounting", "jobs", "tasks"}, names)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, span := range []time.Duration{time.Hour, 24 * time.Hour, 20 * 24 * time.Hour} {
				query := macros(target.RawSQL, span)
				require.NotContains(t, query, "$__", p.Title)
				rows, err := reader.Query(t.Context(), query, pgx.QueryExecModeSimpleProtocol)
				require.NoError(t, err, p.Title)
				var columns []string
				for _, f := range rows.FieldDescriptions() {
					columns = append(columns, f.Name)
				}
				list, err := pgx.CollectRows(rows, pgx.RowToMap)
				require.NoError(t, err, "%s over %s:\n%s", p.Title, span, query)
				if !slices.Contains(mayBeEmpty, p.Title) {
					assert.NotEmpty(t, list, "%s over %s", p.Title, span)
				}
				if target.Format == "time_series" {
					assert.Equal(t, []string{"time", "metric", "value"}, columns, p.Title)
				}
			}
		}
	}
}

// sampled writes what a sampler and workers would have written.
func sampled(t *testing.T, db *pgtest.DB) {
	t.Helper()
	now := time.Now().Add(-time.Minute)
	up := true
	g := figures.Gauges{Holder: "a", Database: figures.Database{
		OldestSnapshot: &figures.Snapshot{Since: now, Xmin: "1", Holder: "session 17"},
		Tables:         []figures.Table{{Name: "daybook.jobs", Rows: 10, Dead: 20}},
		TemporalUp:     &up, Findings: []figures.Finding{{Code: "NO_WORKER", Severity: "critical", Kind: "jobs"}},
	}}
	for _, kind := range []string{"accounting", "jobs", "tasks"} {
		g.Kinds = append(g.Kinds,
			figures.Kind{
				Kind: kind, Counts: figures.Counts{Due: 3, Failed: 1}, OldestDueAt: &now, OldestDueAge: time.Minute,
				Figures: figures.Figures{
					Types: []figures.Type{{
						Type: "email", Counts: figures.Counts{Due: 3}, OldestDueAt: &now,
						Owner: "growth",
					}},
					DeadLetters: []figures.DeadLetters{{Type: "email", Code: "NOT_FOUND", Count: 1}},
					Workflow:    &figures.Workflow{ID: "w", Running: true, Paused: true, PausedSince: &now, Workers: 1},
				},
			})
	}
	require.NoError(t, figures.WriteGauges(t.Context(), db.Pool, g))
	failed := figures.Attempts{Outcome: figures.Outcome{
		Kind: "jobs", Type: "email", Outcome: "failed",
		Code: "NOT_FOUND",
	}, Count: 2}
	done := figures.Attempts{Outcome: figures.Outcome{Kind: "jobs", Type: "email", Outcome: "completed"}, Count: 98}
	for i := range 100 {
		a := &done
		if i >= 98 {
			a = &failed
		}
		a.Waited.Observe(time.Duration(i) * time.Second)
		a.Took.Observe(time.Duration(i) * time.Millisecond)
	}
	require.NoError(t, figures.AddHistory(t.Context(), db.Pool, []figures.Attempts{done, failed}))
}

// TestDashboardKnowsTheBuckets: the queries for percentiles name the bounds of the buckets, which
// are the program's.
func TestDashboardKnowsTheBuckets(t *testing.T) {
	t.Parallel()
	var bounds []string
	for _, b := range figures.Bounds() {
		bounds = append(bounds, strconv.FormatFloat(b, 'f', -1, 64))
	}
	want := "ARRAY[" + strings.Join(bounds, ", ") + "]"
	last := bounds[len(bounds)-1]
	found := 0
	for _, p := range load(t, "daybook-postgresql.json").Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.RawSQL, "ARRAY[0") {
				found++
				assert.Contains(t, target.RawSQL, want, p.Title)
				assert.Contains(t, target.RawSQL, fmt.Sprintf("[min(s.n)], %s)", last), p.Title)
			}
		}
	}
	assert.Equal(t, 2, found)
}

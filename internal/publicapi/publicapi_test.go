package publicapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/publicapi"
)

// What programs can write is on file, so that no change of it goes unnoticed.
func TestAPIFile(t *testing.T) {
	t.Parallel()
	packages, err := publicapi.Load(t.Context(), "../..")
	require.NoError(t, err)
	onFile, err := os.ReadFile(filepath.Join("..", "..", "api.txt"))
	require.NoError(t, err)
	exported := strings.Join(publicapi.Lines(packages), "\n") + "\n"
	if exported == string(onFile) {
		return
	}
	before, now := set(string(onFile)), set(exported)
	for line := range before {
		if !now[line] {
			t.Errorf("the code does not export any more: %s", line)
		}
	}
	for line := range now {
		if !before[line] {
			t.Errorf("api.txt lacks: %s", line)
		}
	}
	t.Error("api.txt is out of date: run make api, look at what changes for users, and commit the result")
}

// A program can write the type of every name that it can use, and the documentation shows what the type has.
func TestNoInternalTypes(t *testing.T) {
	t.Parallel()
	packages, err := publicapi.Load(t.Context(), "../..")
	require.NoError(t, err)
	for _, line := range publicapi.Leaks(packages) {
		assert.Contains(t, leaking, line, "a public package exports a type of an internal one: define the type in a public package, or do not export the name")
	}
}

func set(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		lines[strings.TrimSuffix(line, "\n")] = true
	}
	return lines
}

// leaking is what still exports internal types; nothing is added to it.
var leaking = []string{
	"pkg activities, func NewQueue(c go.temporal.io/sdk/client.Client, e *internal/engine.Engine, s Settings, worker string) *Queue",
	"pkg activities, type FetchOutput struct, Worked *internal/engine.Report",
	"pkg activities, type ProcessOutput = internal/engine.Report",
	"pkg jobs, method (Registry) Failed(job internal/store.Job, err error) internal/engine.Attempt",
	"pkg jobs, method (Registry) Handling(jobType string) (internal/engine.Handling, bool)",
	"pkg jobs, method (Registry) Work(ctx context.Context, job internal/store.Job, progress internal/engine.Progress) (ended internal/engine.Attempt)",
	"pkg jobs, method (Registry) WorkMany(ctx context.Context, tx github.com/jackc/pgx/v5.Tx, jobs []internal/store.Job) ([]internal/engine.Attempt, error)",
	"pkg migrations, func Guards() []internal/store.Guard",
	"pkg queue, type Querier = internal/store.Querier",
	"pkg queue/queuetest, type AccountingOptions struct, Hooks internal/ledger.Hooks",
	"pkg queue/queuetest, type AccountingOptions struct, Sources internal/ledger.Sources",
	"pkg workers, const DocumentDeleted internal/store.FoundState = 3",
	"pkg workers, const DocumentHere internal/store.FoundState = 1",
	"pkg workers, const DocumentLater internal/store.FoundState = 5",
	"pkg workers, const DocumentLocked internal/store.FoundState = 2",
	"pkg workers, const DocumentUnknown internal/store.FoundState = 4",
	"pkg workers, type AfterPosting = internal/ledger.AfterPosting",
	"pkg workers, type AuditOptions = internal/store.AuditOptions",
	"pkg workers, type AuditReport = internal/store.AuditReport",
	"pkg workers, type Commit = internal/engine.Commit",
	"pkg workers, type DocumentSource = internal/ledger.DocumentSource",
	"pkg workers, type Found = internal/ledger.Found",
	"pkg workers, type FoundState = internal/ledger.FoundState",
	"pkg workers, type Hooks = internal/ledger.Hooks",
	"pkg workers, type Job = internal/engine.Job",
	"pkg workers, type JobCommit = internal/engine.JobCommit",
	"pkg workers, type JobProcessor = internal/engine.JobProcessor",
	"pkg workers, type Key = internal/ledger.Key",
	"pkg workers, type Posted = internal/ledger.Posted",
	"pkg workers, type Processor = internal/engine.Processor",
	"pkg workers, type Sources = internal/ledger.Sources",
}

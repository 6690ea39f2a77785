package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// covered says which test compiles, runs or parses a kind of block: those of a language, on a page or
// on all, or the command lines that call a program. A test is that of a package, or a target of the
// Makefile.
var covered = []struct{ language, page, where, test string }{
	{"csv", "docs/import.md", "internal/moving/importer", "TestDocumentationOfCSV"},
	{"csv", "docs/open-items.md", "internal/moving/importer", "TestOpeningOfThePage"},
	{"go", "", "internal/dev/publicapi", "TestGoOfThePages"},
	{"http", "", "server/internal/httpapi", "TestRequestsOfThePages"},
	{"json", "docs/import.md", "internal/moving/importer", "TestDocumentationExample"},
	{"json", "docs/job-types.md", "handlers", "TestFilesOfFunctions"},
	{"json", "docs/rules.md", "accounting/posting", "TestDocumentationExamples"},
	{"json", "docs/tasks.md", "tasks", "TestAnswers"},
	{"ledger", "docs/export.md", "internal/moving/export", "TestCheckersOfThePage"},
	{"ledger", "docs/import.md", "internal/moving/importer", "TestJournalOfThePage"},
	{"mermaid", "docs/states.md", "models", "TestDocDrawsEveryTransition"},
	{"python", "docs/language-workers.md", "examples/languages", "TestWorkersOfThePage"},
	{"sql", "", "internal/dev/publicapi", "TestSQLOfThePages"}, // and those in its runElsewhere
	{"text", "docs/architecture.md", "internal/dev/pages", "TestDrawings"},
	{"text", "docs/rules.md", "accounting/posting", "TestDocumentationExamples"},
	{"ts", "docs/from-prisma.md", "examples/languages", "TestTypeScript"},
	{"ts", "docs/language-workers.md", "examples/languages", "TestWorkersOfThePage"},
	{"yaml", "docs/import.md", "internal/moving/importer", "TestDocumentationOfCSV"},
	{"yaml", "docs/job-types.md", "handlers", "TestFilesOfFunctions"},
	{"yaml", "docs/metrics.md", "Makefile", "test-alerts"},
	{"yaml", "docs/open-items.md", "accounting/posting", "TestRulesOfOpenItems"},
	{"yaml", "docs/rules.md", "accounting/posting", "TestDocumentationExamples"},
	// What the commands of a session print.
	{Console, "docs/doctor.md", "cmd/daybook/look", "TestReportOfThePage"},
	{Console, "docs/import.md", "cmd/daybook", "TestImportIsTakenBack"},
	{Console, "docs/rules.md", "cmd/daybook", "TestCasesOfThePage"},
}

var called = map[string]struct{ where, test string }{
	"apt-get":    {"internal/dev/released", "TestPagesNameWhatIsReleased"},
	"bean-check": {"internal/moving/export", "TestCheckersOfThePage"},
	"cd":         {"cmd/daybook/internal/newapp", "TestAppRunsAsMade"},
	"curl":       {"server/internal/httpapi", "TestCurlOfThePages"},
	"daybook":    {"cmd/daybook", "TestDocumentsNameCommandsThatExist"},
	"docker":     {"internal/dev/devstack", "TestDockerCommandsOfThePages"},
	"go":         {"internal/dev/words", "TestMakeHasWhatThePagesGiveIt"},
	"helm":       {"cmd/daybook", "TestChartHasWhatThePagesName"},
	"hledger":    {"internal/moving/export", "TestCheckersOfThePage"},
	"jq":         {"cmd/daybook", "TestEditOfThePage"},
	"kubectl":    {"cmd/daybook", "TestChartHasWhatThePagesName"},
	"ledger":     {"internal/moving/export", "TestCheckersOfThePage"},
	"make":       {"internal/dev/words", "TestMakeHasWhatThePagesGiveIt"},
	"openssl":    {"cmd/daybook", "TestSignaturesOfThePage"},
	"pg_dump":    {"cmd/daybook", "TestDumpsOfThePages"},
	"pg_restore": {"cmd/daybook", "TestDumpsOfThePages"},
	"psql":       {"internal/dev/publicapi", "TestSQLOfThePages"}, // a file: cmd/daybook, TestWalkthrough
	"sha256sum":  {"internal/dev/released", "TestPagesNameWhatIsReleased"},
	"temporal":   {"workers", "TestTemporalCommandsOfThePages"},
	"":           {"cmd/daybook", "TestCommandsSetVariablesThatExist"}, // nothing: a line that sets variables
}

// TestEveryBlockIsTested: each block of the pages is of a kind that a test covers, and what is said to
// be tested is there, and is tested.
func TestEveryBlockIsTested(t *testing.T) {
	t.Parallel()
	blocks, err := Of("", "")
	require.NoError(t, err)
	used := map[int]bool{}
	for _, b := range blocks {
		found := b.Language == Shell
		for i, c := range covered {
			if c.language == b.Language && (c.page == "" || c.page == b.Page) {
				used[i], found = true, true
			}
		}
		assert.True(t, found, "%s:%d: no test covers %q here: write one, and name it in this file", b.Page, b.Line, b.Language)
	}
	for i, c := range covered {
		assert.True(t, used[i], "%s has no %q", c.page, c.language)
		assertTest(t, c.where, c.test)
	}
	commands, err := Commands("")
	require.NoError(t, err)
	calls := map[string]int{}
	for _, c := range commands {
		program := ""
		if len(c.Words) > 0 {
			program = c.Words[0]
		}
		calls[program]++
		_, covers := called[program]
		assert.True(t, covers, "%s:%d: no test covers %s: write one, and name it in this file", c.Page, c.Line, c)
	}
	for program, c := range called {
		assert.Positive(t, calls[program], "no block calls %q", program)
		assertTest(t, c.where, c.test)
	}
}

// assertTest fails unless the package has the test, or the Makefile the target.
func assertTest(t *testing.T, where, test string) {
	t.Helper()
	dir, err := root()
	require.NoError(t, err)
	pattern, line := filepath.Join(dir, where, "*_test.go"), "\nfunc "+test+"("
	if where == "Makefile" {
		pattern, line = filepath.Join(dir, where), "\n"+test+":"
	}
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), line) {
			return
		}
	}
	assert.Fail(t, "there is no such test", "%s: %s", where, test)
}

// TestDrawings: the files and folders that the drawings of docs/architecture.md name are there.
func TestDrawings(t *testing.T) {
	t.Parallel()
	blocks, err := Of("docs/architecture.md", "text")
	require.NoError(t, err)
	require.Len(t, blocks, 3)
	dir, err := root()
	require.NoError(t, err)
	files, folders := 0, 0
	for _, file := range regexp.MustCompile(`\w+\.go\b`).FindAllString(blocks[1].Text, -1) {
		files++
		assert.FileExists(t, filepath.Join(dir, "internal", "engine", file))
	}
	for _, m := range regexp.MustCompile(`(?m)^(  )?([a-z]\S+(?:, [a-z]+)*) {2,}`).FindAllStringSubmatch(blocks[2].Text, -1) {
		for folder := range strings.SplitSeq(m[2], ", ") {
			folders++
			assert.DirExists(t, filepath.Join(dir, strings.Replace(m[1], "  ", "internal", 1), folder))
		}
	}
	assert.Greater(t, files, 8)
	assert.Greater(t, folders, 25)
}

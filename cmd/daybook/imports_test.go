package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testLibraries = regexp.MustCompile(`^(testing|github\.com/stretchr/testify(/.*)?|github\.com/golang/mock(/.*)?|pgregory\.net/rapid|` +
		`go\.uber\.org/goleak(/.*)?|github\.com/Shopify/toxiproxy(/.*)?|github\.com/chromedp/.*|.*/internal/pgtest(/.*)?|.*/temporaltest)$`)
	// Temporal's SDK keeps its test suite beside its client in one package, and its API's mocks with
	// it. The linker leaves out all of both but the initialisation of some variables.
	temporalsOwn = regexp.MustCompile(`^(go\.temporal\.io/sdk/internal|go\.temporal\.io/api/workflowservicemock/v1)$`)
)

// No package that the program is built from imports a library for tests, but for Temporal's.
func TestBinaryLinksNoTestLibrary(t *testing.T) {
	t.Parallel()
	const format = `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}`
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, ".").Output()
	require.NoError(t, err)
	require.Contains(t, string(output),
		"github.com/daybook-dev/daybook/cmd/daybook github.com/daybook-dev/daybook/internal/store")
	for line := range strings.Lines(string(output)) {
		importer, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
		if testLibraries.MatchString(imported) && !testLibraries.MatchString(importer) &&
			!temporalsOwn.MatchString(importer) {
			assert.Fail(t, importer+" imports "+imported)
		}
	}
}

package look

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

// A finding that has the name of an error code says it once.
func TestDoctorSaysACodeOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := health.Finding{
		Code: "HANDLER_MISSING", Severity: "warning", Kind: "jobs", Type: "receipt",
		ErrorCode: "HANDLER_MISSING",
	}
	a := &cli.App{}
	require.NoError(t, printReport(a, &out, health.Report{Findings: []health.Finding{f}}))
	assert.Regexp(t, `(?m)^WARNING  HANDLER_MISSING  jobs receipt$`, out.String())
}

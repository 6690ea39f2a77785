package queue_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Domain code that only enqueues compiles neither Temporal nor the rule engine, nor OpenTelemetry,
// nor a driver of GORM.
func TestImports(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "github.com/daybook-dev/daybook/internal/store", "the list is of this package")
	const ours = "github.com/daybook-dev/daybook/"
	allowed := map[string]bool{
		"queue": true, "models": true, "internal/store": true, "internal/store/due": true,
		"internal/store/direct": true, "internal/store/hosts": true, "internal/store/wake": true, "internal/payload": true,
		"failure": true, "models/locks": true,
		"internal/text/phrase": true, "internal/telemetry/span": true, "internal/telemetry/events": true,
		"accounting": true, "encryption": true,
	}
	for _, dep := range deps {
		if name, ok := strings.CutPrefix(dep, ours); ok {
			assert.True(t, allowed[name], "%s is none of what domain code may compile", dep)
		}
		for _, prefix := range []string{
			"go.temporal.io/", "go.opentelemetry.io/", "cel.dev/", "github.com/google/cel-go",
			"gorm.io/driver/", "google.golang.org/grpc", "github.com/stretchr/testify", "testing",
		} {
			assert.False(t, dep == prefix || strings.HasPrefix(dep, prefix), "%s is compiled", dep)
		}
	}
}

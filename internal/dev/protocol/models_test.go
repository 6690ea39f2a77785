package protocol_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models/locks"
)

// search is one exhaustive search of a model.
type search struct {
	model string
	// defines are the guards that are left out, and the bounds, as they are given to SPIN.
	defines string
	// property is the formula that is checked, with weak fairness; empty: the assertions, and that no
	// process is stuck.
	property string
	// finds is what SPIN says of the counterexample; empty: there is none.
	finds string
}

// searches are all of them. A model that cannot fail is worthless: so each guard is left out once.
var searches = []search{
	{"lease", "", "", ""},
	{"lease", "FAULTS=1", "ends", ""},
	{"lease", "NO_FENCE", "", "assertion violated  !(committed)"},
	{"lease", "NO_GENERATION SNOOZES=0 FAULTS=1", "", "assertion violated  !(committed)"},
	{"lease", "NO_BEGIN SNOOZES=0 FAULTS=1", "", ""},
	{"lease", "NO_BEGIN", "", "assertion violated (saw==asked)"},
	{"lease", "NO_RAISE", "", "assertion violated (saw==asked)"},
	{"lease", "NO_RENEW", "", "assertion violated ( !((((("},
	{"lease", "NO_RECLAIM FAULTS=1", "ends", "acceptance cycle"},
	{"lease", "NO_RECONCILE FAULTS=1", "ends", "acceptance cycle"},
	{"wake", "", "found", ""},
	{"wake", "NO_NOTIFY", "found", "acceptance cycle"},
	{"wake", "NO_SHARED", "found", "acceptance cycle"},
	{"wake", "NO_SCAN", "found", "acceptance cycle"},
	{"wake", "LISTEN_LATE", "found", "acceptance cycle"},
	{"turns", "", "", ""},
	{"turns", "", "obeyed", ""},
	{"turns", "", "reclaimed", ""},
	{"turns", "NO_PAUSE", "", "assertion violated  !(paused)"},
	{"turns", "NO_WAITING", "", "assertion violated (waiters<=1)"},
	{"turns", "NO_ORDER", "obeyed", "acceptance cycle"},
	{"turns", "NO_DRAIN", "obeyed", "acceptance cycle"},
	{"turns", "NO_CARRY", "reclaimed", "acceptance cycle"},
	{"locks", "", "", ""},
	{"locks", "WORKER_WAITS", "", "invalid end state"},
	{"locks", "LEASE_WAITS", "", "invalid end state"},
	{"locks", "CONFIGURATION_FIRST", "", "invalid end state"},
	{"locks", "ROW_FIRST", "", "invalid end state"},
	{"shared", "", "", ""},
	{"shared", "NO_SAVEPOINT", "", "assertion violated ((effects[1]==0)"},
	{"shared", "NO_LEASE", "", "assertion violated ((effects[0]==1)"},
	{"shared", "CHARGE_ALL", "", "assertion violated ((effects[0]==1)"},
}

// TestModels searches each model, whole and without each of its guards.
func TestModels(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: apt-get install spin gcc libc6-dev", program)
		}
	}
	for _, s := range searches {
		t.Run(strings.Join(strings.Fields(s.model+" "+s.defines+" "+s.property), " "), func(t *testing.T) {
			t.Parallel()
			s.check(t)
		})
	}
}

// states is how SPIN says how many states there are.
var states = regexp.MustCompile(`(\d+) states, stored`)

func (s search) check(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile(s.model + ".pml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.pml"), text, 0o600))
	args := []string{"-a"}
	for d := range strings.FieldsSeq(s.defines) {
		args = append(args, "-D"+d)
	}
	run(t, dir, "spin", append(args, "model.pml")...)
	compile := []string{"-O1", "-w", "-DCOLLAPSE", "-DMEMLIM=500", "-o", "pan", "pan.c"}
	depth := []string{"-m200000"}
	if s.property == "" {
		compile = append(compile, "-DSAFETY", "-DNOCLAIM")
	} else {
		compile, depth = append(compile, "-DNFAIR=4"), append(depth, "-a", "-f", "-N", s.property)
	}
	run(t, dir, "gcc", compile...)
	said := run(t, dir, "./pan", depth...)
	for _, short := range []string{"max search depth too small", "Search not completed", "truncated", "reached -DMEMLIM"} {
		if s.finds == "" {
			require.NotContains(t, said, short, "the search was not exhaustive")
		}
	}
	if s.finds != "" {
		assert.Contains(t, said, s.finds, "without its guard the model has a counterexample")
		return
	}
	require.Contains(t, said, "errors: 0", "%s\nThe steps: cd %s && spin -t -p -g model.pml", said, dir)
	n, err := strconv.Atoi(states.FindStringSubmatch(said)[1])
	require.NoError(t, err)
	t.Logf("%d states", n)
}

// advisory is a lock of the model that is one of the table's.
var advisory = regexp.MustCompile(`(?m)^#define [A-Z]+ \d +/\* (configuration[a-z ]*|[a-z]+ leases|reclaim)\b`)

// TestLocksAreThoseOfTheTable: the advisory locks of the model have the names of models/locks.
func TestLocksAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("locks.pml")
	require.NoError(t, err)
	found := advisory.FindAllStringSubmatch(string(text), -1)
	require.Len(t, found, 6)
	for _, m := range found {
		assert.Contains(t, locks.Names, m[1])
	}
}

// run runs a program in a folder, and returns what it says. pan ends with 0 whatever it finds.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = dir
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", program, strings.Join(args, " "), said)
	return string(said)
}

//go:build linux

package devstack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The helper is this test program run again: it starts a stack in the directory, tells about it and
// waits to be killed.
const (
	helperDir      = "DAYBOOK_DEVSTACK_TEST_DIR"
	helperWatchdog = "DAYBOOK_DEVSTACK_TEST_WATCHDOG"
)

type helperReport struct {
	Database           string
	Postgres, Temporal int
}

func runHelper(dir string) {
	useWatchdog = os.Getenv(helperWatchdog) != ""
	s, err := Start(context.Background(), Options{Dir: dir, NoUI: true, Private: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	report := helperReport{Database: s.DatabaseURL, Postgres: s.postgres.pid, Temporal: s.temporal.pid}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		os.Exit(1)
	}
	select {}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct{ name, watchdog string }{{"parent-death signal", ""}, {"watchdog", "1"}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			dir := workDir(t)
			helper := exec.CommandContext(t.Context(), os.Args[0])
			helper.Env = append(os.Environ(), helperDir+"="+dir, helperWatchdog+"="+mode.watchdog)
			helper.Stderr = os.Stderr
			out, err := helper.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, helper.Start())
			line, err := bufio.NewReader(out).ReadBytes('\n')
			require.NoError(t, err)
			var report helperReport
			require.NoError(t, json.Unmarshal(line, &report))
			execSQL(t, report.Database, `CREATE TABLE kept AS SELECT 'data' AS what`)
			started := family(t, helper.Process.Pid)
			require.Contains(t, started, report.Postgres)
			require.Contains(t, started, report.Temporal)
			require.Greater(t, len(started), 4, "PostgreSQL's own processes are among them")

			require.NoError(t, helper.Process.Signal(syscall.SIGKILL))
			require.Error(t, helper.Wait())
			require.Eventually(t, func() bool {
				return !slices.ContainsFunc(started, running)
			}, time.Minute, 50*time.Millisecond, "processes %v are left of the one that started them", started)

			s := startStack(t, Options{Dir: dir, NoUI: true})
			require.Equal(t, "data", queryString(t, s.DatabaseURL, `SELECT what FROM kept`))
		})
	}
}

// TestStartAtOnceAfterAKill starts again at once, while the old server may still be writing its
// checkpoint.
func TestStartAtOnceAfterAKill(t *testing.T) {
	t.Parallel()
	dir := workDir(t)
	helper := exec.CommandContext(t.Context(), os.Args[0])
	helper.Env = append(os.Environ(), helperDir+"="+dir)
	out, err := helper.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, helper.Start())
	_, err = bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, helper.Process.Kill())
	require.Error(t, helper.Wait())
	s := startStack(t, Options{Dir: dir, NoUI: true})
	require.Equal(t, "daybook", queryString(t, s.DatabaseURL, `SELECT current_database()`))
}

// family returns the process ids of all descendants.
func family(t *testing.T, root int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	children := map[int][]int{}
	for _, stat := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		require.NoError(t, err)
		if _, parent := state(pid); parent != 0 {
			children[parent] = append(children[parent], pid)
		}
	}
	var all []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}

// running reports whether the process exists and has not ended: one whose parent does not wait for
// it stays in the table as a zombie.
func running(pid int) bool {
	s, _ := state(pid)
	return s != "" && s != "Z"
}

func state(pid int) (state string, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0
	}
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

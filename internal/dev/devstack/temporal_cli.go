package devstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// temporalVersion is the release of the Temporal CLI that is built when none is installed.
// tools/go.mod pins the same.
const temporalVersion = "v1.5.1"

// temporalBuild names the program in the cache; the last number grows when tools/go.mod changes the
// libraries that it is built from. The release's own SQLite leaves the database of a server in
// memory unusable ("interrupted") once a request was given up at the wrong moment; tools/go.mod has
// a later one, as Temporal's later releases do.
const temporalBuild = temporalVersion + ".1"

const (
	temporalModule  = "github.com/temporalio/cli"
	temporalPackage = temporalModule + "/cmd/temporal"
	ownModule       = "github.com/daybook-dev/daybook"
)

// temporalPlaces are where installers put the Temporal CLI, which are not on every PATH. ~ is the
// user's home directory.
var temporalPlaces = []string{
	"~/.temporalio/bin/temporal",              // the CLI's own installer
	"/opt/homebrew/bin/temporal",              // Homebrew on Apple silicon
	"/usr/local/bin/temporal",                 // Homebrew on Intel, and what is installed by hand
	"/home/linuxbrew/.linuxbrew/bin/temporal", // Homebrew on Linux
}

// TemporalCLI returns the path of a Temporal CLI: the one on the PATH, or where installers put it,
// or else one that it builds into the user's cache directory, which takes some minutes, once.
// Concurrent calls, also of other processes, wait for one build. progress gets a line when the
// program is not that of the PATH, and before a build; it may be nil.
func TemporalCLI(ctx context.Context, progress func(string)) (string, error) {
	if progress == nil {
		progress = func(string) {}
	}
	if path, err := exec.LookPath("temporal"); err == nil && isTemporalCLI(ctx, path) {
		return path, nil
	}
	if path := installedTemporal(ctx); path != "" {
		progress("Using the Temporal CLI " + path + ", which is not on the PATH.")
		return path, nil
	}
	return buildTemporalCLI(ctx, progress)
}

// installedTemporal is the first Temporal CLI that stands in one of temporalPlaces; empty: none
// does.
func installedTemporal(ctx context.Context) string {
	home, err := os.UserHomeDir()
	for _, place := range temporalPlaces {
		if below, ok := strings.CutPrefix(place, "~/"); ok {
			if err != nil {
				continue
			}
			place = filepath.Join(home, below)
		}
		if isTemporalCLI(ctx, place) {
			return place
		}
	}
	return ""
}

// buildTemporalCLI is TemporalCLI without the search on the PATH.
func buildTemporalCLI(ctx context.Context, progress func(string)) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w, and there is no cache directory to build it in: set HOME or XDG_CACHE_HOME: %w",
			ErrNoTemporal, err)
	}
	bin := filepath.Join(cache, "daybook", "bin")
	path := filepath.Join(bin, "temporal-"+temporalBuild)
	if isTemporalCLI(ctx, path) {
		return path, nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil { //nolint:gosec // programs, not secrets
		return "", err
	}
	lock, err := waitLock(filepath.Join(bin, "lock"))
	if err != nil {
		return "", fmt.Errorf("lock %s: %w", bin, err)
	}
	defer func() { _ = lock.close() }()
	if isTemporalCLI(ctx, path) {
		return path, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err // it was not found because nothing runs any more
	}
	if _, err := exec.LookPath("go"); err != nil {
		return "", noTemporal(errors.New("there is no Go toolchain to build it with either"))
	}
	progress("Building the Temporal CLI " + temporalVersion +
		", because none is installed; this takes some minutes, once.\n" +
		"It starts at once where one is installed: `brew install temporal`, or `curl -sSf https://temporal.download/cli.sh | sh`.\n" +
		"Without building anything: `docker compose up`.")
	if err := buildTemporal(ctx, path); err != nil {
		return "", noTemporal(err)
	}
	if !isTemporalCLI(ctx, path) {
		return "", fmt.Errorf("the Temporal CLI that was built does not run: remove %s and try again", path)
	}
	return path, nil
}

// withoutXDS leaves out what Google's storage client needs to ask for addresses by xDS: 23 s of the
// build's 265 s of processor time. The archivers and databases that a development server does not
// run either have no tag, and the libraries' versions of Daybook's own build save nothing.
const withoutXDS = "-tags=disable_grpc_modules"

// buildTemporal builds into a directory beside the target and moves the program to its name when it
// is complete.
func buildTemporal(ctx context.Context, path string) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "building-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built := filepath.Join(dir, "temporal")
	flags := "-ldflags=-s -w -X " + temporalModule + "/temporalcli.Version=" + strings.TrimPrefix(temporalVersion, "v")
	env := []string{"GOWORK=off", "GOFLAGS="}
	args := []string{"build", "-buildvcs=false", withoutXDS, flags, "-o", built, temporalPackage}
	if tools, ok := toolsDir(); ok {
		args = append([]string{"build", "-C", tools}, args[1:]...)
	} else {
		args = []string{"install", "-buildvcs=false", withoutXDS, flags, temporalPackage + "@" + temporalVersion}
		env = append(env, "GOBIN="+dir, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	}
	if err := run(ctx, command{name: "go " + args[0], path: "go", args: args, env: environment(env)}); err != nil {
		return err
	}
	return os.Rename(built, path)
}

// toolsDir returns the checkout's tools directory when the program runs inside a checkout of
// Daybook.
func toolsDir() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for {
		if moduleOf(filepath.Join(dir, "go.mod")) == ownModule {
			tools := filepath.Join(dir, "tools")
			return tools, moduleOf(filepath.Join(tools, "go.mod")) != ""
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func moduleOf(goMod string) string {
	f, err := os.Open(goMod)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// isTemporalCLI runs the program: another one may have the name.
func isTemporalCLI(ctx context.Context, path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	return err == nil && strings.HasPrefix(string(out), "temporal version") && strings.Contains(string(out), "Server")
}

func noTemporal(err error) error {
	return fmt.Errorf("%w. Do one of these three:\n"+
		"  - install it: `brew install temporal`, or `curl -sSf https://temporal.download/cli.sh | sh` (https://docs.temporal.io/cli)\n"+
		"  - set %s to the host:port of a Temporal server that runs elsewhere\n"+
		"  - run everything in containers: docker compose up\n%w", ErrNoTemporal, EnvTemporalAddress, err)
}

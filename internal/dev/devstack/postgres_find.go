package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	oldestPostgres = 14
	installTimeout = 10 * time.Minute
)

// postgresPlaces are where packagers put PostgreSQL's server programs, which are often not on the
// PATH.
var postgresPlaces = []string{
	"/usr/lib/postgresql/*/bin",                       // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                // Fedora, Red Hat
	"/opt/homebrew/opt/postgresql@*/bin",              // Homebrew on Apple silicon
	"/usr/local/opt/postgresql@*/bin",                 // Homebrew on Intel
	"/usr/local/pgsql/bin",                            // built from source
	"/Applications/Postgres.app/*/*/*/bin",            // Postgres.app
	"/usr/libexec/postgresql*",                        // Alpine
	"/nix/var/nix/profiles/default/bin",               // Nix
	"/opt/local/lib/postgresql*/bin",                  // MacPorts
	"/run/current-system/sw/bin",                      // NixOS
	"/usr/local/bin",                                  // FreeBSD
	"/usr/local/lib/postgresql*/bin",                  // other
	"/usr/lib64/postgresql*/bin",                      // Gentoo, openSUSE
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin", // Homebrew on Linux
}

// postgresBinaries returns the directory of the server programs to use: of the version that made
// the data in home, or, for new data, when home is empty, of the newest that is installed, PATH
// first. With install, it installs the package on Debian when it runs as root.
func postgresBinaries(ctx context.Context, home string, install bool, progress func(string)) (string, error) {
	found := installedPostgres(ctx)
	if home != "" {
		b, err := os.ReadFile(filepath.Join(home, dataName, versionName))
		if err != nil {
			return "", err
		}
		made := strings.TrimSpace(string(b))
		for _, f := range found {
			if strconv.Itoa(f.major) == made {
				return f.bin, nil
			}
		}
		return "", fmt.Errorf("the data in %s was made by PostgreSQL %s, which is not installed: install that version, "+
			"or remove the directory to start afresh", home, made)
	}
	if len(found) > 0 {
		return found[0].bin, nil
	}
	if !install || !canInstall() {
		return "", noPostgres("")
	}
	if err := installPostgres(ctx, progress); err != nil {
		return "", fmt.Errorf("%w\n%w", noPostgres(": apt-get could not install it"), err)
	}
	if found = installedPostgres(ctx); len(found) == 0 {
		return "", noPostgres(" after apt-get installed package postgresql")
	}
	return found[0].bin, nil
}

func noPostgres(detail string) error {
	return fmt.Errorf("%w%s. Do one of these three:\n"+
		"  - install it, for example: apt-get install postgresql, dnf install postgresql-server, brew install postgresql@17\n"+
		"  - set %s to the address of a database that runs elsewhere, for example postgres://user:password@host:5432/daybook\n"+
		"  - run everything in containers: docker compose up", ErrNoPostgres, detail, EnvDatabaseURL)
}

type installation struct {
	bin   string
	major int
}

// installedPostgres lists the usable installations: the one on the PATH first, then the others,
// newest first.
func installedPostgres(ctx context.Context) []installation {
	var found []installation
	seen := map[string]bool{}
	add := func(bin string) {
		// The PATH may hold links to some of the programs only.
		if initdb, err := filepath.EvalSymlinks(filepath.Join(bin, "initdb")); err == nil {
			bin = filepath.Dir(initdb)
		}
		if seen[bin] {
			return
		}
		seen[bin] = true
		if major, err := postgresMajor(ctx, bin); err == nil && major >= oldestPostgres {
			found = append(found, installation{bin, major})
		}
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		add(filepath.Dir(initdb))
	}
	onPath := len(found)
	for _, place := range postgresPlaces {
		matches, err := filepath.Glob(place)
		if err != nil {
			continue
		}
		for _, bin := range matches {
			add(bin)
		}
	}
	rest := found[onPath:]
	sort.SliceStable(rest, func(i, j int) bool { return rest[i].major > rest[j].major })
	return found
}

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func postgresMajor(ctx context.Context, bin string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0, err
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%s/postgres does not tell its version: %q", bin, out)
	}
	return strconv.Atoi(string(m[1]))
}

// canInstall reports whether this is root on a Debian system.
func canInstall() bool {
	_, noDebian := os.Stat("/etc/debian_version")
	_, noApt := exec.LookPath("apt-get")
	return isRoot() && noDebian == nil && noApt == nil
}

// installLock keeps stacks that start at the same time from installing side by side: apt-get waits
// for another one while it installs, but not while it updates its lists. Only root writes there.
const installLock = "/run/daybook-install.lock"

// installPostgres installs Debian's package without the database cluster that it would otherwise
// create and start.
func installPostgres(ctx context.Context, progress func(string)) error {
	lock, err := waitLock(installLock)
	if err != nil {
		return fmt.Errorf("lock %s: %w", installLock, err)
	}
	defer func() { _ = lock.close() }()
	if len(installedPostgres(ctx)) > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	progress("Installing PostgreSQL with apt-get; this takes about a minute, once.")
	if err := noDefaultCluster("/etc/postgresql-common"); err != nil {
		return err
	}
	apt := func(args ...string) error {
		return run(ctx, command{
			name: "apt-get " + args[0], path: "apt-get",
			args: append([]string{"-o", "DPkg::Lock::Timeout=300", "-q", "-y"}, args...),
			env:  environment([]string{"DEBIAN_FRONTEND=noninteractive"}),
			// An interrupted apt-get finishes the package at hand.
			onDeath: syscall.SIGINT,
		})
	}
	// The package lists may be old enough to name files that are gone; without a network the old ones
	// have to do.
	update := apt("update")
	if err := apt("install", "--no-install-recommends", "postgresql"); err != nil {
		return errors.Join(update, err)
	}
	return nil
}

// noDefaultCluster tells Debian's package not to create a cluster, unless the machine's owner has
// already said what it should do.
func noDefaultCluster(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a system directory
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "createcluster.conf"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // a system file
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("create_main_cluster = false\n")
	return errors.Join(err, f.Close())
}

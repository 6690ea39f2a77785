package languages_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// file is one that a folder of programs gets besides.
type file struct{ name, text string }

// compiled copies a folder of TypeScript programs, generates Prisma's client where there is a
// schema for it, compiles all, and returns the copy.
func compiled(t *testing.T, source string, others ...file) string {
	t.Helper()
	npm, node := found(t, "npm"), found(t, "node")
	dir := t.TempDir()
	for _, entry := range contents(t, source) {
		path := filepath.Join(source, entry.Name())
		if entry.IsDir() {
			require.NoError(t, os.CopyFS(filepath.Join(dir, entry.Name()), os.DirFS(path)))
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, entry.Name()), text, 0o600))
	}
	for _, other := range others {
		require.NoError(t, os.WriteFile(filepath.Join(dir, other.name), []byte(other.text), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(installed(t, npm, source), "node_modules"),
		filepath.Join(dir, "node_modules")))
	if _, err := os.Stat(filepath.Join(dir, "schema.prisma")); err == nil {
		run(t, dir, node, filepath.Join("node_modules", "prisma", "build", "index.js"), "generate")
	}
	run(t, dir, node, filepath.Join("node_modules", "typescript", "bin", "tsc"), "-p", ".", "--outDir", "dist")
	return dir
}

// contents lists what is in a folder of programs, but for what npm and the compiler make in it.
func contents(t *testing.T, source string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(source)
	require.NoError(t, err)
	kept := all[:0]
	for _, entry := range all {
		if name := entry.Name(); name != "node_modules" && name != "dist" && name != "generated" {
			kept = append(kept, entry)
		}
	}
	return kept
}

// installed has the packages of a folder in the user's cache, installed once for each text of its
// lock file, and returns the place.
func installed(t *testing.T, npm, source string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum, files := sha256.New(), map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json"} {
		files[name], err = os.ReadFile(filepath.Join(source, name))
		require.NoError(t, err)
		_, _ = sum.Write(files[name]) // a hash takes everything
	}
	dir := filepath.Join(cache, "daybook", "node-"+hex.EncodeToString(sum.Sum(nil))[:12])
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o750))
	partial, err := os.MkdirTemp(filepath.Dir(dir), "node-partial-") //nolint:usetesting // it is renamed, so it has to be in the file system of the cache
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(partial) }() // it is renamed when all went well
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(partial, name), text, 0o600))
	}
	run(t, partial, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.Rename(partial, dir); err != nil {
		require.DirExists(t, dir, "another process may have been faster, but was not: %v", err)
	}
	return dir
}

// run runs a command in a folder.
func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Dir = dir
	// Prisma generates its client without an engine, but asks for one first: it takes any program
	// that it is told.
	c.Env = append(os.Environ(), "PRISMA_SCHEMA_ENGINE_BINARY="+command[0], "CHECKPOINT_DISABLE=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%v: %s", command, out)
}

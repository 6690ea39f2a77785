package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// nodeProcesses is how many processes of a peer that runs on node work a queue: one uses one core.
const nodeProcesses = 2

// nodeFiles are the programs that run graphile-worker and pg-boss, with their pinned dependencies.
var nodeFiles = []string{"package.json", "package-lock.json", "peer.mjs", "graphile.mjs", "pgboss.mjs"}

//go:embed node
var nodeSource embed.FS

// nodePeers are graphile-worker and pg-boss as they can be run here.
type nodePeers struct {
	node string
	// nodeVersion is that of node.
	nodeVersion string
	// dir holds the programs and their dependencies.
	dir string
}

// nodeConfig is what the programs are told. Each peer's settings say what the fields mean to it.
type nodeConfig struct {
	DatabaseURL string `json:"databaseUrl"`
	Name        string `json:"name"`
	// Migrate: only the schema is made.
	Migrate bool `json:"migrate"`
	// Waits: it works when it is told to. Counts: it tells how many jobs are done, instead of each
	// beginning.
	Waits  bool `json:"waits"`
	Counts bool `json:"counts"`
	// Handler and Idle say what pg-boss's handler does.
	Handler     string  `json:"handler"`
	Idle        bool    `json:"idle"`
	Concurrency int     `json:"concurrency"`
	Pool        int     `json:"pool"`
	Batch       int     `json:"batch"`
	Monitor     int     `json:"monitor"`
	Polling     float64 `json:"polling"`
	// LocalQueue and CompleteDelay are graphile-worker's.
	LocalQueue    int `json:"localQueue"`
	CompleteDelay int `json:"completeDelay"`
}

// useNode returns the peers that run on node, or why they cannot be run here. They are looked for
// once.
func (b *bench) useNode(ctx context.Context) (*nodePeers, string) {
	if b.alone {
		return nil, "peers are left out"
	}
	b.nodeOnce.Do(func() {
		var err error
		if b.node, err = b.findNode(ctx); err != nil {
			b.noNode = err.Error()
		}
	})
	if b.noNode != "" {
		b.say("  %s, %s: %s", graphileName, pgbossName, b.noNode)
	}
	return b.node, b.noNode
}

func (b *bench) findNode(ctx context.Context) (_ *nodePeers, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: rows left out", err)
		}
	}()
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node not found")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, errors.New("npm not found")
	}
	n := &nodePeers{node: node}
	if n.dir, err = b.installNode(ctx, npm); err != nil {
		return nil, err
	}
	// The node that is pinned beside the peers is there on most platforms.
	pinned, err := filepath.Glob(filepath.Join(n.dir, "node_modules", "node-*-*", "bin", "node"))
	if err == nil && len(pinned) == 1 {
		n.node = pinned[0]
	}
	output, err := exec.CommandContext(ctx, n.node, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask for node's version: %w", err)
	}
	n.nodeVersion = strings.TrimSpace(string(output))
	for template, program := range map[string]string{graphileTemplate: "graphile.mjs", pgbossTemplate: "pgboss.mjs"} {
		if err := b.makeNodeTemplate(ctx, n, template, program); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// makeNodeTemplate makes a database with a peer's schema, and a ledger for its jobs to write to.
func (b *bench) makeNodeTemplate(ctx context.Context, n *nodePeers, template, program string) error {
	address, err := b.createDatabase(ctx, template, "template0")
	if err != nil {
		return err
	}
	migrate := n.command(ctx, program, nodeConfig{DatabaseURL: address, Migrate: true})
	if output, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("make the schema by %s: %w: %s", program, err, output)
	}
	pool, err := openPool(ctx, address, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, createLedger)
	return err
}

// installNode installs the pinned packages into the user's cache, once for each text of the files,
// and returns the folder.
func (b *bench) installNode(ctx context.Context, npm string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("look for the user's cache: %w", err)
	}
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range nodeFiles {
		if files[name], err = nodeSource.ReadFile("node/" + name); err != nil {
			return "", err
		}
		_, _ = sum.Write(files[name]) // a hash takes everything
	}
	dir := filepath.Join(cache, "daybook", "bench-node-"+hex.EncodeToString(sum.Sum(nil))[:12])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	b.say("  Installing %s and %s into %s.", graphileName, pgbossName, dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // a cache of public packages
		return "", err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "bench-node-partial-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(partial) }() // it is renamed when all went well
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(partial, name), text, 0o600); err != nil {
			return "", err
		}
	}
	install := exec.CommandContext(ctx, npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = partial
	if output, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install by npm ci: %w: %s", err, output)
	}
	// Another process may have been faster.
	if err := os.Rename(partial, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return "", err
		}
	}
	return dir, nil
}

// nodePinned is the version of a package that node/package.json names.
func nodePinned(name string) string {
	text, err := nodeSource.ReadFile("node/package.json")
	if err != nil {
		return ""
	}
	var p struct {
		Dependencies         map[string]string `json:"dependencies"`
		OptionalDependencies map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return ""
	}
	return cmp.Or(p.Dependencies[name], p.OptionalDependencies[name])
}

// command is a process of one of the programs.
func (n *nodePeers) command(ctx context.Context, program string, config nodeConfig) *exec.Cmd {
	text, _ := json.Marshal(config) //nolint:errchkjson // texts, numbers and booleans
	cmd := exec.CommandContext(ctx, n.node, program)
	cmd.Dir = n.dir
	cmd.Env = append(os.Environ(), "NODE_ENV=production", "NO_LOG_SUCCESS=1", "BENCH_NODE="+string(text))
	return cmd
}

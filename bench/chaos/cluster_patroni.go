package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	randv2 "math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/daybook-dev/daybook/bench/child"
)

// patroni are two servers that Patroni keeps, by etcd, behind HAProxy, which asks Patroni for the
// primary. Commits wait for the standby, unless replication is asynchronous.
type patroni struct {
	dir      string
	async    bool
	random   *randv2.Rand
	user     *syscall.Credential // nil: who runs this
	password string
	port     int // HAProxy's
	etcd     *child.Child
	haproxy  *child.Child
	nodes    []*node
}

// node is a server and its Patroni.
type node struct {
	Name, Dir, Bin    string
	Port, API, Etcd   int
	Password, Daybook string
	Sync              bool
	child             *child.Child
	disk              bool
}

func (n *node) data() string { return filepath.Join(n.Dir, "data") }

// patroniLacks says what is not installed.
func patroniLacks() error {
	for _, name := range []string{"patroni", "etcd", "haproxy"} {
		if program(name) == "" {
			return fmt.Errorf("%s is not there: apt-get install patroni etcd-server haproxy", name)
		}
	}
	return nil
}

// program is the path of a program, which Debian may have put where only root looks.
func program(name string) string {
	for _, name := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

var patroniSettings = template.Must(template.New("patroni").Parse(`
scope: chaos
name: {{.Name}}
restapi: {listen: "127.0.0.1:{{.API}}", connect_address: "127.0.0.1:{{.API}}"}
etcd3: {host: "127.0.0.1:{{.Etcd}}"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: {{.Sync}}
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 150, shared_buffers: 64MB, max_wal_size: 128MB, min_wal_size: 32MB, wal_keep_size: 64MB}
  initdb: [encoding: UTF8, locale: C, data-checksums]
postgresql:
  listen: "127.0.0.1:{{.Port}}"
  connect_address: "127.0.0.1:{{.Port}}"
  data_dir: {{.Dir}}/data
  bin_dir: {{.Bin}}
  pgpass: {{.Dir}}/pgpass
  basebackup: {checkpoint: fast}
  authentication:
    superuser: {username: postgres, password: {{.Password}}}
    replication: {username: replicator, password: {{.Password}}}
  parameters: {unix_socket_directories: ""}
  pg_hba: ["host all all 127.0.0.1/32 scram-sha-256", "host replication replicator 127.0.0.1/32 scram-sha-256"]
`))

const haproxySettings = `
defaults
  mode tcp
  timeout connect 2s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen primary
  bind 127.0.0.1:%d
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
`

func (p *patroni) start(ctx context.Context) error {
	p.password = rand.Text()
	if err := p.chooseUser(); err != nil {
		return err
	}
	bin, err := newestPostgres()
	if err != nil {
		return err
	}
	ports := make([]int, 7)
	for i := range ports {
		if ports[i], err = freePort(ctx); err != nil {
			return err
		}
	}
	p.port = ports[0]
	if err := p.own(p.dir); err != nil {
		return err
	}
	client, peer := "http://"+loopback(ports[1]), "http://"+loopback(ports[2])
	p.etcd, err = p.launch("etcd", syscall.SIGKILL, program("etcd"), "--data-dir", filepath.Join(p.dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--log-level", "error")
	if err != nil {
		return err
	}
	var settings strings.Builder
	_, _ = fmt.Fprintf(&settings, haproxySettings, p.port) // a builder takes all
	for i, name := range []string{"a", "b"} {
		n := &node{
			Name: name, Dir: filepath.Join(p.dir, name), Bin: bin, Port: ports[3+2*i], API: ports[4+2*i], Etcd: ports[1],
			Password: p.password, Sync: !p.async,
		}
		if n.disk, err = mountSmall(n.Dir, diskSize); err != nil {
			return err
		}
		if err := p.own(n.Dir); err != nil {
			return err
		}
		p.nodes = append(p.nodes, n)
		_, _ = fmt.Fprintf(&settings, "  server %s %s check port %d\n", n.Name, loopback(n.Port), n.API)
		if err := p.launchNode(n); err != nil {
			return err
		}
		if i == 0 { // the first is the primary
			if err := await(ctx, 3*time.Minute, "Patroni's first server", n.isPrimary); err != nil {
				return err
			}
		}
	}
	file := filepath.Join(p.dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(settings.String()), 0o600); err != nil {
		return err
	}
	if p.haproxy, err = child.Start(exec.Command(program("haproxy"), "-db", "-f", file), filepath.Join(p.dir, "haproxy.log"), syscall.SIGKILL); err != nil { //nolint:noctx // stop ends it
		return err
	}
	admin, err := p.admin(ctx)
	if err != nil {
		return err
	}
	if err := onServer(ctx, strings.Replace(admin, "/daybook?", "/postgres?", 1),
		`CREATE ROLE daybook LOGIN CREATEDB CREATEROLE PASSWORD '`+p.password+`'`, `CREATE DATABASE daybook OWNER daybook`,
		`ALTER DATABASE daybook SET search_path = daybook, public`); err != nil {
		return err
	}
	return p.mend(ctx)
}

// chooseUser chooses whom PostgreSQL, which refuses root, runs as.
func (p *patroni) chooseUser() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return fmt.Errorf("PostgreSQL refuses to run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	p.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return err
}

// own makes a directory that is the servers' user's.
func (p *patroni) own(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil || p.user == nil { //nolint:gosec // the servers' user passes through
		return err
	}
	return os.Chown(dir, int(p.user.Uid), int(p.user.Gid))
}

func newestPostgres() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	best, version := "", 0
	for _, dir := range found {
		if v, err := strconv.Atoi(filepath.Base(filepath.Dir(dir))); err == nil && v > version {
			best, version = dir, v
		}
	}
	if best == "" {
		return "", errors.New("PostgreSQL is not where Debian puts it")
	}
	return best, nil
}

func (p *patroni) launch(name string, onDeath syscall.Signal, path string, args ...string) (*child.Child, error) {
	cmd := exec.Command(path, args...) //nolint:noctx // stop ends it
	cmd.Dir = p.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "PATRONI_") && !strings.HasPrefix(kv, "LC_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8")
	if p.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user}
	}
	return child.Start(cmd, filepath.Join(p.dir, name+".log"), onDeath)
}

func (p *patroni) launchNode(n *node) (err error) {
	var text bytes.Buffer
	if err := patroniSettings.Execute(&text, n); err != nil {
		return err
	}
	file := filepath.Join(p.dir, n.Name+".yml")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil { //nolint:gosec // the servers' user reads it
		return err
	}
	// When this program dies, Patroni stops its server.
	n.child, err = p.launch("patroni-"+n.Name, syscall.SIGTERM, program("patroni"), file)
	return err
}

func (p *patroni) leader() string { return loopback(p.port) }

func (p *patroni) url() string { return p.address("daybook", p.port) }

func (p *patroni) address(user string, port int) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, p.password), Host: loopback(port), Path: "/daybook",
		RawQuery: "sslmode=disable&connect_timeout=5",
	}).String()
}

func (p *patroni) admin(ctx context.Context) (string, error) {
	n, err := p.primary(ctx)
	if err != nil {
		return "", err
	}
	return p.address("postgres", n.Port), nil
}

func (p *patroni) primaryDir(ctx context.Context) string {
	n, err := p.primary(ctx)
	if err != nil || !n.disk {
		return ""
	}
	return n.Dir
}

// isPrimary returns nil when Patroni says that its server is the primary.
func (n *node) isPrimary(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return n.ask(ctx, http.MethodGet, "/primary", nil)
}

func (n *node) ask(ctx context.Context, method, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+loopback(n.API)+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = fmt.Errorf("Patroni %s: %s: %.200s", path, response.Status, answer)
	}
	return err
}

// primary is the server that is the primary, once there is one.
func (p *patroni) primary(ctx context.Context) (found *node, err error) {
	err = await(ctx, 90*time.Second, "a primary", func(ctx context.Context) error {
		for _, n := range p.nodes {
			if err = n.isPrimary(ctx); err == nil {
				found = n
				return nil
			}
		}
		return err
	})
	return found, err
}

// mend starts what has ended, and waits until the standby is one that may be promoted.
func (p *patroni) mend(ctx context.Context) error {
	for _, n := range p.nodes {
		if n.child.Ended() {
			if err := p.launchNode(n); err != nil {
				return err
			}
		}
	}
	return await(ctx, 3*time.Minute, "Patroni's standby follows", func(ctx context.Context) error {
		n, err := p.primary(ctx)
		if err != nil {
			return err
		}
		path := "/replica"
		if !p.async {
			path = "/sync"
		}
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return p.other(n).ask(try, http.MethodGet, path, nil)
	})
}

func (p *patroni) other(n *node) *node {
	if n == p.nodes[0] {
		return p.nodes[1]
	}
	return p.nodes[0]
}

func (p *patroni) troubles() []trouble {
	return []trouble{
		{name: "restart", what: "PostgreSQL restarted at once", strike: p.restart, every: 70 * time.Second},
		{name: "switchover", what: "switchover by Patroni", strike: p.switchover, every: 90 * time.Second},
		{name: "failover", what: "primary and Patroni killed (kill -9)", strike: p.failover, every: 120 * time.Second},
		{name: "freeze", what: "primary and Patroni frozen, then reset", strike: p.freeze, every: 180 * time.Second},
	}
}

// restart ends the primary without a word; Patroni starts it again, or promotes the standby.
func (p *patroni) restart(ctx context.Context) error {
	n, err := p.primary(ctx)
	if err != nil {
		return err
	}
	if first := postmaster(n.data()); first != 0 {
		sendAll([]int{first}, syscall.SIGQUIT)
	}
	return p.writes(ctx)
}

func (p *patroni) switchover(ctx context.Context) error {
	n, err := p.primary(ctx)
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := n.ask(asking, http.MethodPost, "/switchover", map[string]string{"leader": n.Name, "candidate": p.other(n).Name}); err != nil {
		return err
	}
	return p.writes(ctx)
}

func (p *patroni) failover(ctx context.Context) error {
	n, err := p.primary(ctx)
	if err != nil {
		return err
	}
	pids := family(n.data())
	n.child.Kill()
	sendAll(pids, syscall.SIGKILL)
	return p.writes(ctx)
}

// freeze stops the machine of the primary, as a hypervisor does; when the other is the primary, the
// watchdog resets it. Without a watchdog a primary that goes on may take the lock back, with all lost
// that the other has confirmed (docs/infrastructure.md).
func (p *patroni) freeze(ctx context.Context) error {
	n, err := p.primary(ctx)
	if err != nil {
		return err
	}
	sendAll([]int{n.child.PID}, syscall.SIGSTOP)
	pids := freeze(n.data())
	err = p.writes(ctx)
	n.child.Kill()
	sendAll(pids, syscall.SIGKILL)
	return err
}

// writes returns when a primary takes writes at the address that leads to it.
func (p *patroni) writes(ctx context.Context) error {
	return await(ctx, 2*time.Minute, "a primary takes writes", func(ctx context.Context) error {
		return onServer(ctx, p.address("postgres", p.port), `CREATE TEMP TABLE written ()`)
	})
}

func (p *patroni) stop() {
	for _, n := range p.nodes {
		if n.child != nil {
			pids := family(n.data())
			sendAll([]int{n.child.PID}, syscall.SIGCONT)
			n.child.Kill()
			sendAll(pids, syscall.SIGKILL)
		}
	}
	for _, c := range []*child.Child{p.haproxy, p.etcd} {
		if c != nil {
			c.Kill()
		}
	}
	for _, n := range p.nodes {
		if n.disk {
			_ = syscall.Unmount(n.Dir, 0) // what is left ends with this program
		}
	}
}

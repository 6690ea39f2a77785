package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// patience is how long the test waits for something to be seen. A sample is taken every second
// here.
const patience = 90 * time.Second

// bundle is an installation of Daybook: a database, Temporal behind a proxy that can be cut, and
// processes of the program's own binary.
type bundle struct {
	*pgtest.DB
	t           *testing.T
	binary      string
	namespace   string
	temporal    *proxy
	environment []string
	// worker is the running worker; its metrics are at metricsOf["worker"], the server's at
	// metricsOf["serve"].
	worker    *exec.Cmd
	metricsOf map[string]string
	// console is the address of the server, and browser is signed in there.
	console string
	browser *http.Client
	// prometheus scrapes both processes; nil: it is not to be had.
	prometheus *prometheus
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: pgtest.New(t), t: t, metricsOf: map[string]string{}}
	b.binary = filepath.Join(t.TempDir(), "daybook")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", b.binary, "../../../cmd/daybook").CombinedOutput()
	require.NoError(t, err, "go build: %s", out)
	server := temporaltest.Shared(t)
	b.namespace = server.Namespace(t)
	b.temporal = startProxy(t, server.Address)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DAYBOOK_") && !strings.HasPrefix(e, "TEMPORAL_") {
			b.environment = append(b.environment, e)
		}
	}
	b.environment = append(b.environment, "DAYBOOK_DATABASE_URL="+b.URL, "TEMPORAL_ADDRESS="+b.temporal.address,
		"TEMPORAL_NAMESPACE="+b.namespace,
		"DAYBOOK_SMTP_HOST=127.0.0.1", "DAYBOOK_SMTP_PORT="+closedPort(t), "DAYBOOK_SMTP_TLS=none",
		"DAYBOOK_SMTP_FROM=shop@example.com",
		"DAYBOOK_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "DAYBOOK_WEBHOOK_TIMEOUT=5m", "DAYBOOK_METRICS_SAMPLE_EVERY=1s")
	return b
}

// closedPort is a port on which no program listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// command is the program with this installation's environment.
func (b *bundle) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.t.Context(), b.binary, args...)
	cmd.Env = b.environment
	return cmd
}

// ok runs a command that must succeed, and returns what it printed.
func (b *bundle) ok(args ...string) string {
	b.t.Helper()
	cmd := b.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(b.t, err, "daybook %s: %s", strings.Join(args, " "), errs.String())
	return string(out)
}

// exec runs statements.
func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), sql, args...)
	require.NoError(b.t, err)
}

// doctor is what daybook doctor finds, with what the faults are known by.
func (b *bundle) doctor() (found []health.Finding) {
	b.t.Helper()
	out, err := b.command("doctor", "--json", "--snapshot-age", "1s").Output()
	if _, bad := errors.AsType[*exec.ExitError](err); !bad {
		require.NoError(b.t, err)
	}
	var r struct {
		Findings []struct {
			health.Finding

			ErrorCode string `json:"errorCode"`
		} `json:"findings"`
	}
	require.NoError(b.t, json.Unmarshal(out, &r), "%s", out)
	for _, f := range r.Findings {
		f.Finding.ErrorCode = f.ErrorCode
		found = append(found, f.Finding)
	}
	return found
}

// listening finds the addresses that a process says that it listens on.
var listening = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// start starts a process that runs until the test ends, and waits until it has logged a line that
// says so much and an address, which it returns.
func (b *bundle) start(says string, args ...string) (*exec.Cmd, string) {
	b.t.Helper()
	cmd := b.command(append(args, "--log-level", "info")...)
	logs := &logged{found: make(chan string, 1), says: says}
	cmd.Stdout, cmd.Stderr = logs, logs
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() {
		b.kill(cmd)
		if b.t.Failed() {
			b.t.Logf("daybook %s logged:\n%s", strings.Join(args, " "), logs.tail())
		}
	})
	select {
	case address := <-logs.found:
		return cmd, address
	case <-time.After(patience):
		require.Fail(b.t, "the process does not begin", "daybook %s: %s", strings.Join(args, " "), logs.tail())
		return nil, ""
	}
}

// kill ends a process as the system would that runs out of memory.
func (b *bundle) kill(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
}

// logged keeps what a process logs, and finds the line with its address.
type logged struct {
	mu    sync.Mutex
	text  bytes.Buffer
	says  string
	found chan string
	done  bool
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(p)
	if !l.done {
		for line := range strings.SplitSeq(l.text.String(), "\n") {
			if address := listening.FindString(line); address != "" && strings.Contains(line, l.says) {
				l.done = true
				l.found <- address
				break
			}
		}
	}
	return n, err
}

func (l *logged) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	return text[max(0, len(text)-6000):]
}

// get reads a page that must be there.
func (b *bundle) get(address string) (string, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	client := b.browser
	if client == nil {
		client = &http.Client{}
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, resp.Status)
	}
	return string(body), err
}

// signIn signs in to the console with a token that may read.
func (b *bundle) signIn() {
	b.t.Helper()
	var token struct{ Token string }
	require.NoError(b.t, json.Unmarshal([]byte(b.ok("tokens", "create", "--name", "on call", "--scope", "read",
		"--all-orgs", "--json")), &token))
	jar, err := cookiejar.New(nil)
	require.NoError(b.t, err)
	b.browser = &http.Client{Jar: jar}
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	form := url.Values{"token": {token.Token}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.console+"console/sign-in",
		strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := b.browser.Do(req)
	require.NoError(b.t, err)
	require.NoError(b.t, resp.Body.Close())
	require.Equal(b.t, http.StatusOK, resp.StatusCode, "signed in")
}

// proxy is a way to a server that can be cut and mended.
type proxy struct {
	address string
	target  string
	mu      sync.Mutex
	cut     bool
	open    map[net.Conn]bool
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{address: l.Addr().String(), target: target, open: map[net.Conn]bool{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.set(true)
		serving.Wait()
	})
	return p
}

// serve carries bytes both ways until either side ends.
func (p *proxy) serve(c net.Conn) {
	d, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = c.Close()
		return
	}
	if !p.keep(c, d) {
		return
	}
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_ = c.Close()
			_ = d.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	delete(p.open, d)
}

// keep notes two ends of a connection, or closes them while the way is cut.
func (p *proxy) keep(ends ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range ends {
		if p.cut {
			_ = c.Close()
		} else {
			p.open[c] = true
		}
	}
	return !p.cut
}

// set cuts the way, or mends it.
func (p *proxy) set(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.open {
			_ = c.Close()
		}
	}
}

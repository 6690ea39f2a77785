package devstack

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// Namespace is the namespace that the Temporal development server begins with.
const Namespace = "default"

// temporalTimeout bounds one start of the Temporal server, without the build of its program.
const temporalTimeout = time.Minute

// startTemporal starts Temporal's development server and waits until its namespace answers.
func (s *Stack) startTemporal(ctx context.Context, o Options) error {
	for _, setting := range o.DynamicConfig {
		if !strings.Contains(setting, "=") {
			return fmt.Errorf("dynamic config %q: write it as key=value, with the value in JSON", setting)
		}
	}
	cli, err := TemporalCLI(ctx, s.progress)
	if err != nil {
		return err
	}
	s.progress("Starting Temporal.")
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		ports, err := choosePorts(ctx, o.TemporalPort, o.UIPort)
		if err != nil {
			return fmt.Errorf("Temporal: %w", err)
		}
		log, err := openLog(filepath.Join(s.Dir, "temporal.log"))
		if err != nil {
			return err
		}
		p, err := start(command{
			name: "Temporal", path: cli, args: temporalArgs(s.Dir, ports[0], ports[1], o), dir: s.Dir, out: log,
			// Settings for clients are not meant for this server.
			env: environment(nil, "TEMPORAL_"),
			// Its database survives that, and nothing can make it linger.
			onDeath: syscall.SIGKILL,
		}, s.log)
		_ = log.Close()
		if err != nil {
			return err
		}
		s.temporal = p
		err = p.waitReady(ctx, func(ctx context.Context) error { return describe(ctx, address(ports[0])) })
		// The server also chooses free ports for itself, which another program may take first. It says
		// so in its log, above a stack of calls that fills the log's tail.
		lostRace := p.ended() && ctx.Err() == nil
		if err == nil {
			s.TemporalAddress, s.TemporalCLI = address(ports[0]), cli
			if !o.NoUI {
				s.TemporalUI = "http://" + address(ports[1])
			}
			return nil
		}
		if !lostRace || attempt == 3 {
			return err
		}
	}
}

func temporalArgs(dir string, port, uiPort int, o Options) []string {
	args := []string{
		"server", "start-dev", "--ip", loopback, "--port", strconv.Itoa(port),
		"--log-level", "error", "--color", "never", "--namespace", Namespace,
	}
	if o.NoUI {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(uiPort))
	}
	if !o.InMemory {
		args = append(args, "--db-filename", filepath.Join(dir, "temporal.db"))
	}
	for _, setting := range o.DynamicConfig {
		args = append(args, "--dynamic-config-value", setting)
	}
	return args
}

// describe asks the server for its namespace, which is there only when everything else is.
func describe(ctx context.Context, address string) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Namespace: Namespace, Logger: silent{}})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
	return err
}

// silent keeps the client's warnings about a server that is still starting out of the program's
// output.
type silent struct{}

var _ sdklog.Logger = silent{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

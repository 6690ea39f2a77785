package devstack

import (
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/internal/dev/pages"
)

// composeFile is the part of a compose file that Daybook's uses; another key is an error.
type composeFile struct {
	Name     string
	Services map[string]composeService
	Volumes  map[string]any
}

type composeService struct {
	Image           string
	Build           *struct{ Context, Target string }
	Profiles        []string
	Command         []string
	Environment     map[string]string
	Ports           []string
	Volumes         []string
	DependsOn       map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck     *composeHealthcheck
	Restart         string
	StopGracePeriod string   `yaml:"stop_grace_period"`
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
}

type composeHealthcheck struct {
	Test              []string
	Interval, Timeout string
	Retries           int
}

// containers are the compose file and the Dockerfile.
func containers(t *testing.T) (compose composeFile, dockerfile []byte) {
	t.Helper()
	f, err := os.Open("../../../docker-compose.yml")
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&compose))
	dockerfile, err = os.ReadFile("../../../Dockerfile")
	require.NoError(t, err)
	return compose, dockerfile
}

// No Docker engine takes part in this test: it checks that the file's parts agree with each other
// and with the program.
func TestComposeFileIsCoherent(t *testing.T) {
	t.Parallel()
	compose, dockerfile := containers(t)
	var stages []string
	for _, m := range regexp.MustCompile(`(?m)^FROM \S+:\S+ AS (\w+)$`).FindAllSubmatch(dockerfile, -1) {
		stages = append(stages, string(m[1]))
	}
	pinned := regexp.MustCompile(`^docker\.io/[a-z/]+:v?\d+(\.\d+)*$`)
	for name, s := range compose.Services {
		if s.Build != nil {
			require.Contains(t, stages, s.Build.Target, "service %s: build target", name)
			require.True(t, s.ReadOnly, "service %s: it writes no file", name)
			require.Equal(t, []string{"ALL"}, s.CapDrop, "service %s: it needs no rights", name)
			require.Equal(t, []string{"no-new-privileges:true"}, s.SecurityOpt, "service %s", name)
		} else {
			require.Regexp(t, pinned, s.Image, "service %s: image with a version, and its registry, which podman wants to be told", name)
		}
		for _, port := range s.Ports {
			require.True(t, strings.HasPrefix(port, loopback+":"), "service %s: port %s on loopback only", name, port)
		}
		for _, volume := range s.Volumes {
			volumeName, _, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(volumeName, "./") {
				require.DirExists(t, "../../../"+volumeName, "service %s: folder", name)
				require.True(t, strings.HasSuffix(volume, ":ro"), "service %s: %s of the checkout is only read", name,
					volumeName)
				continue
			}
			require.Contains(t, compose.Volumes, volumeName, "service %s: volume", name)
		}
		for other, needs := range s.DependsOn {
			needed, ok := compose.Services[other]
			require.True(t, ok, "service %s depends on %s", name, other)
			require.Empty(t, needed.Profiles, "service %s depends on %s, which is not always started", name, other)
			switch needs.Condition {
			case "service_healthy":
				require.NotNil(t, needed.Healthcheck, "service %s waits for the health of %s", name, other)
				if s.Restart != "" {
					require.Equal(t, s.Restart, needed.Restart, "service %s is started again, and needs %s", name, other)
				}
			case "service_completed_successfully":
				require.Empty(t, needed.Restart, "service %s waits for the end of %s", name, other)
			default:
				require.Fail(t, "unknown condition", "service %s: %s", name, needs.Condition)
			}
		}
	}

	worker, postgres, temporal := compose.Services["worker"], compose.Services["postgres"], compose.Services["temporal"]
	require.Equal(t, "docker.io/temporalio/temporal:"+strings.TrimPrefix(temporalVersion, "v"), temporal.Image)
	require.Equal(t, "temporal:7233", worker.Environment[EnvTemporalAddress])
	plain := regexp.MustCompile(`\$\{\w+:-(\w+)\}`).ReplaceAllString
	database, err := url.Parse(plain(worker.Environment[EnvDatabaseURL], "$1"))
	require.NoError(t, err)
	require.Equal(t, "postgres:5432", database.Host)
	require.Equal(t, postgres.Environment["POSTGRES_USER"], database.User.Username())
	password, _ := database.User.Password()
	require.Equal(t, plain(postgres.Environment["POSTGRES_PASSWORD"], "$1"), password)
	require.Equal(t, "/"+postgres.Environment["POSTGRES_DB"], database.Path)
	require.Equal(t, worker.Environment, compose.Services["migrate"].Environment)
	require.Equal(t, []string{"migrate", "up"}, compose.Services["migrate"].Command)
}

// TestDockerCommandsOfThePages: the services, profiles and arguments that the pages name are there. No
// Docker engine takes part.
func TestDockerCommandsOfThePages(t *testing.T) {
	t.Parallel()
	compose, dockerfile := containers(t)
	var profiles []string
	for _, s := range compose.Services {
		profiles = append(profiles, s.Profiles...)
	}
	commands, err := pages.Commands("docker")
	require.NoError(t, err)
	for _, c := range commands {
		words := c.Words[1:]
		require.Contains(t, []string{"build", "compose", "push", "run", "stop"}, words[0], "%s:%d", c.Page, c.Line)
		for i, word := range words[1:] {
			name, _, _ := strings.Cut(word, "=")
			switch words[i] {
			case "exec", "--scale":
				require.Contains(t, slices.Collect(maps.Keys(compose.Services)), name, "%s:%d", c.Page, c.Line)
			case "--profile":
				require.Contains(t, profiles, name, "%s:%d", c.Page, c.Line)
			case "--build-arg":
				require.Contains(t, string(dockerfile), "\nARG "+name+"=", "%s:%d", c.Page, c.Line)
			case "compose":
				require.Contains(t, []string{"up", "down", "exec", "--profile"}, word, "%s:%d", c.Page, c.Line)
			}
		}
	}
	require.Greater(t, len(commands), 6)
}

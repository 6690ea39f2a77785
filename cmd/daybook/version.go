package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/migrations"
)

// version and commit are set when a release is built: -ldflags "-X main.version=v1.2.3 -X main.commit=…".
var version, commit string

type versionInfo struct {
	Version string `json:"version"`
	// Commit is the one that the program was built from; Modified: with changes that are not in it.
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Schema is the newest migration that it knows: the schema that it needs.
	Schema int64 `json:"schema"`
	// TemporalSDK and TemporalAPI are the versions of Temporal's modules: of its SDK, and of what
	// servers are asked.
	TemporalSDK string `json:"temporalSdk"`
	TemporalAPI string `json:"temporalApi,omitempty"`
	Go          string `json:"go"`
	Platform    string `json:"platform"`
}

func readVersion() versionInfo {
	v := versionInfo{
		Version: version, Commit: commit, TemporalSDK: temporal.SDKVersion, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, d := range info.Deps {
			if d.Path == "go.temporal.io/api" {
				v.TemporalAPI = d.Version
			}
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = cmp.Or(v.Commit, s.Value)
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	v.Version = cmp.Or(v.Version, "(devel)")
	return v
}

// line is what people are shown.
func (v versionInfo) line() string {
	return fmt.Sprintf("daybook %s %s %s\n", v.Version, v.Platform, v.Go)
}

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long: "Prints the version of this program; with --json also the commit that it was built from, the schema that it needs, " +
			"and the versions of Temporal's SDK, of Temporal's API and of Go.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			var err error
			if v.Schema, err = migrations.Newest(); err != nil {
				return err
			}
			return a.Emit(v, func(w io.Writer) error {
				_, err := io.WriteString(w, v.line())
				return err
			})
		},
	}
}

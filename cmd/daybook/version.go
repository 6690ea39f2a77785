package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

// version is set when a release is built: -ldflags "-X main.version=v1.2.3".
var version string

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
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
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return a.Emit(v, func(w io.Writer) error {
				_, err := io.WriteString(w, v.line())
				return err
			})
		},
	}
}

// Command packages makes the .deb and the .rpm that .goreleaser.yaml describes of one program, in
// seconds: goreleaser itself builds every platform first.
//
//	packages -program bin/daybook -version 0.1.0 -commit-time 2026-01-31T10:00:00Z -out bin/packages
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	described := flag.String("config", ".goreleaser.yaml", "what describes the packages")
	program := flag.String("program", "", "the program that is packed")
	version := flag.String("version", "", "its version")
	committed := flag.String("commit-time", "", "the time that every file gets, as RFC 3339")
	out := flag.String("out", "", "where the packages are written")
	root := flag.String("root", ".", "the folder that the paths of the configuration begin in")
	flag.Parse()
	project, err := config.Load(*described)
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(*root); err != nil {
		log.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, *committed)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range project.NFPMs {
		for _, format := range p.Formats {
			path, err := build(p, format, *program, *version, *out, at.UTC())
			if err != nil {
				log.Fatalf("%s: %v", format, err)
			}
			fmt.Println(path)
		}
	}
}

// build makes one package.
func build(p config.NFPM, format, program, version, out string, at time.Time) (path string, err error) {
	all := files.Contents{{
		Source: program, Destination: filepath.Join(p.Bindir, "daybook"),
		FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: at},
	}}
	for _, c := range p.Contents {
		all = append(all, &files.Content{
			Source: c.Source, Destination: c.Destination, Type: c.Type, Packager: c.Packager,
			FileInfo: &files.ContentFileInfo{
				Owner: c.FileInfo.Owner, Group: c.FileInfo.Group, Mode: c.FileInfo.Mode, MTime: at,
			},
		})
	}
	o := p.Overrides[format]
	info := nfpm.WithDefaults(&nfpm.Info{
		Arch: runtime.GOARCH, Platform: "linux", Name: p.PackageName, Version: version, Section: p.Section,
		Maintainer: p.Maintainer, Description: p.Description, Homepage: p.Homepage, License: p.License, MTime: at,
		Overridables: nfpm.Overridables{
			Depends: append(p.Dependencies, o.Dependencies...), Contents: all,
			Scripts: nfpm.Scripts{
				PostInstall: p.Scripts.PostInstall, PreRemove: p.Scripts.PreRemove, PostRemove: p.Scripts.PostRemove,
			},
			RPM: nfpm.RPM{BuildHost: o.RPM.BuildHost},
		},
	})
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	path = filepath.Join(out, strings.NewReplacer("{{ .PackageName }}", p.PackageName, "{{ .Version }}", version,
		"{{ .Os }}", "linux", "{{ .Arch }}", runtime.GOARCH).Replace(p.FileNameTemplate)+"."+format)
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := packager.Package(info, f); err != nil {
		return "", err
	}
	return path, f.Close()
}

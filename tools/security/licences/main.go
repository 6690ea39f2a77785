// Command licences looks at the licence of every module that a program links, on each system that it
// is built for. It fails when one is not in the list of those that ask for nothing but their text,
// or when a module has none; -write puts the texts into one file, which belongs with the program.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are permissive licences. MPL-2.0 is not: it wants the source of what was changed.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "Unlicense", "Zlib"}

// read is what was found by reading, where licensecheck knows no text. A module fails when it gets
// another version, until that is read as well.
var read = map[string]string{
	// Fonts, which may be passed on as they are with this text.
	"github.com/go-fonts/dejavu@v0.3.2": "BSD-3-Clause + Bitstream Vera",
	// Options for protocol buffers, which go.temporal.io/api (MIT) requires.
	"github.com/nexus-rpc/nexus-proto-annotations@v0.1.0": "no licence file",
}

var (
	systems     = []string{"linux", "darwin", "windows"}
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([-._].*)?$`)
)

// module is one that is linked, and the folders of its packages.
type module struct {
	Path, Version, Dir string
	Main               bool
	folders            map[string]bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("licences: ")
	dir := flag.String("C", ".", "the folder of the program's module")
	write := flag.String("write", "", "a file for the licences' texts")
	flag.Parse()
	modules, err := linked(*dir, flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	var all bytes.Buffer
	var refused []error
	counts := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		names, err := modules[path].licences(&all)
		if err != nil {
			refused = append(refused, err)
		}
		counts[strings.Join(names, " + ")]++
	}
	for _, names := range slices.Sorted(maps.Keys(counts)) {
		fmt.Printf("%4d  %s\n", counts[names], names)
	}
	if err := errors.Join(refused...); err != nil {
		log.Fatalf("%v\nTake another library, or read the licence and add it to the list in tools/security/licences.", err)
	}
	if *write != "" {
		if err := os.MkdirAll(filepath.Dir(*write), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(*write, all.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// linked lists the modules that packages are linked from, the standard library among them.
func linked(dir string, packages []string) (map[string]*module, error) {
	modules := map[string]*module{"Go": {Path: "Go", Version: runtime.Version(), folders: map[string]bool{}}}
	for _, system := range systems {
		c := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, packages...)...)
		c.Dir, c.Stderr = dir, os.Stderr
		c.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", system, err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct {
				Dir    string
				Module *module
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := modules[p.Module.Path]
			if m == nil {
				m = p.Module
				m.folders = map[string]bool{}
				modules[m.Path] = m
			}
			for folder := p.Dir; len(folder) >= len(m.Dir); folder = filepath.Dir(folder) {
				m.folders[folder] = true
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	modules["Go"].folders[strings.TrimSpace(string(root))] = true
	return modules, nil
}

// licences are the names of the licences in the folders of a module; it adds their texts to all.
func (m *module) licences(all io.Writer) ([]string, error) {
	found := map[string]bool{}
	for _, folder := range slices.Sorted(maps.Keys(m.folders)) {
		files, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if file.IsDir() || !licenceFile.MatchString(file.Name()) || strings.HasSuffix(file.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, file.Name()))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(all, "%s\n%s %s: %s\n\n%s\n\n", strings.Repeat("=", 80), m.Path, m.Version, file.Name(),
				bytes.TrimSpace(text))
			scanned := licensecheck.Scan(text)
			for _, match := range scanned.Match {
				found[match.ID] = true
			}
			if len(scanned.Match) == 0 && !strings.HasPrefix(strings.ToLower(file.Name()), "notice") {
				found["unknown: "+file.Name()] = true
			}
		}
	}
	if name := read[m.Path+"@"+m.Version]; name != "" {
		return []string{name}, nil
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return names, fmt.Errorf("%s %s has no licence", m.Path, m.Version)
	}
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			return names, fmt.Errorf("%s %s: the licence %s is not one of %s", m.Path, m.Version, name, strings.Join(allowed, ", "))
		}
	}
	return names, nil
}

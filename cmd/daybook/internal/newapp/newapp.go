package newapp

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/daybook-dev/daybook/failure"
)

// Module is Daybook's own module.
const Module = "github.com/daybook-dev/daybook"

// goVersion is the language version of the application's module: that of Daybook's.
const goVersion = "1.26.0"

var (
	// ErrOptions means that no application can be made so. What is wrong is in the error's text.
	ErrOptions = failure.New(failure.Usage, "the options are wrong")
	// ErrNotEmpty means that there is something in the directory.
	ErrNotEmpty = failure.New(failure.FileExists, "the directory is not empty")
)

// files are the application. It is a package of this module too, which is compiled, linted and
// tested with the others; only go.mod is not there, because it would make a module of its own.
//
//go:embed app/*.go app/app_test.go app/*.md app/*.yml app/Dockerfile app/Makefile app/.gitignore app/books app/migrations
var files embed.FS

// Options say what is made.
type Options struct {
	// Dir is where; it is made if it is missing.
	Dir string
	// Module is the path of the application's module. Empty: example.com/ and the directory's name.
	Module string
	// Version is the program's, such as v0.1.0.
	Version string
	// Replace is a checkout of Daybook that the application uses in place of a release. Empty: none.
	Replace string
}

var (
	modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)
	// release is a version that the Go module proxy can have: no build of a checkout.
	release = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+(\.?[0-9]+)*)?$`)
)

// Make writes the application, and returns the paths of its files.
func Make(o Options) ([]string, error) {
	goMod, err := o.goMod()
	if err != nil {
		return nil, err
	}
	if err := makeEmpty(o.Dir); err != nil {
		return nil, err
	}
	paths := []string{filepath.Join(o.Dir, "go.mod")}
	if err := os.WriteFile(paths[0], goMod, 0o644); err != nil { //nolint:gosec // source code, as other files are
		return nil, err
	}
	return paths, fs.WalkDir(files, "app", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(o.Dir, filepath.FromSlash(strings.TrimPrefix(name, "app")))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755) //nolint:gosec // a folder of source code, as others are
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		paths = append(paths, to)
		return os.WriteFile(to, text, 0o644) //nolint:gosec // source code, as other files are
	})
}

// goMod is the application's go.mod. It names Daybook alone: `go mod tidy` adds what the files
// import, in the versions that Daybook has.
func (o Options) goMod() ([]byte, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	module := cmp.Or(o.Module, path.Join("example.com", filepath.Base(dir)))
	if !modulePath.MatchString(module) {
		return nil, fmt.Errorf("%w: %q is no module path: give one such as --module example.com/app", ErrOptions, module)
	}
	version, replace := o.Version, ""
	switch {
	case o.Replace != "":
		checkout, err := filepath.Abs(o.Replace)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
		if err != nil || !strings.HasPrefix(string(text), "module "+Module+"\n") {
			return nil, fmt.Errorf("%w: --replace %s: want the folder of a checkout of Daybook", ErrOptions, o.Replace)
		}
		version, replace = "v0.0.0", fmt.Sprintf("\nreplace %s => %q\n", Module, checkout)
	case !release.MatchString(o.Version):
		return nil, fmt.Errorf("%w: this program, version %s, is no release that an application could require: "+
			"give --replace and the folder of Daybook's checkout, or use a released program", ErrOptions, o.Version)
	}
	return fmt.Appendf(nil, "module %s\n\ngo %s\n\nrequire %s %s\n%s", module, goVersion, Module, version, replace), nil
}

// makeEmpty makes a directory, or refuses one that has anything in it.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a folder of source code, as others are
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%w: %s has %s: name a directory that is empty or does not exist", ErrNotEmpty, dir,
			entries[0].Name())
	}
	return nil
}

package publicapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Module is the path of the module whose API this is.
const Module = "github.com/daybook-dev/daybook"

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Name       string
	Export     string
	DepOnly    bool
	Error      *struct{ Err string }
}

// Load reads the public packages of the module that dir is in, in the order of their paths: those
// that another module can import, but for the examples and for the folders of the program in cmd,
// which promise nothing. It compiles them, as far as the build cache does not have them.
func Load(ctx context.Context, dir string) ([]*types.Package, error) {
	public, from, err := Importer(ctx, dir)
	if err != nil {
		return nil, err
	}
	packages := make([]*types.Package, len(public))
	for i, path := range public {
		if packages[i], err = from.Import(path); err != nil {
			return nil, fmt.Errorf("package %s: %w", path, err)
		}
	}
	return packages, nil
}

// Importer returns the paths of what Load reads, and an importer of these packages and of all that
// they import.
func Importer(ctx context.Context, dir string) ([]string, types.Importer, error) {
	command := exec.CommandContext(ctx, "go", "list", "-e", "-export", "-deps",
		"-json=ImportPath,Name,Export,DepOnly,Error", Module+"/...")
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	exports := map[string]string{}
	var public []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		if p.Error != nil {
			return nil, nil, fmt.Errorf("package %s does not compile: %s", p.ImportPath, p.Error.Err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Name != "main" && !internal(p.ImportPath) &&
			!strings.HasPrefix(p.ImportPath, Module+"/examples/") && !strings.HasPrefix(p.ImportPath, Module+"/cmd/") {
			public = append(public, p.ImportPath)
		}
	}
	slices.Sort(public)
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	return public, importer.ForCompiler(token.NewFileSet(), "gc", lookup), nil
}

// internal reports whether a path of the module is one that other modules cannot import.
func internal(path string) bool {
	return path == Module+"/internal" || strings.HasPrefix(path, Module+"/internal/") ||
		strings.HasPrefix(path, Module+"/") && strings.Contains(path, "/internal/")
}

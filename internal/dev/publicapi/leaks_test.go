package publicapi_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/publicapi"
)

const hidden = `package hidden

type T struct{ Field int }

func (T) Method() {}

type Constraint interface{ Method() }
`

const open = `package open

import "github.com/daybook-dev/daybook/internal/hidden"

const Constant = 1

var Variable []*hidden.T

type Alias = hidden.T

type Func func(map[string]hidden.T)

type Struct struct {
	hidden.T

	Field   chan hidden.T
	Clean   int
	private hidden.T
}

func (s *Struct) Clear() { s.private = hidden.T{} }

func (s *Struct) Takes(list ...hidden.T) {}

type Interface interface{ Gives() [1]hidden.T }

type Generic[P any] struct{ Value P }

func Instance() Generic[hidden.T] { return Generic[hidden.T]{} }

func Constrained[P hidden.Constraint](p P) {}

func Hidden(x any) { _ = x.(hidden.T) }
`

// compile makes packages of texts, each of which may import those before it.
func compile(t *testing.T, texts ...[2]string) (last *types.Package) {
	t.Helper()
	done := imports{}
	for _, text := range texts {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, text[0], text[1], 0)
		require.NoError(t, err)
		config := types.Config{Importer: done}
		last, err = config.Check(publicapi.Module+"/"+text[0], files, []*ast.File{file}, nil)
		require.NoError(t, err)
		done[last.Path()] = last
	}
	return last
}

type imports map[string]*types.Package

func (i imports) Import(path string) (*types.Package, error) {
	if p := i[path]; p != nil {
		return p, nil
	}
	return importer.Default().Import(path)
}

// A type of an internal package is found wherever in an exported type it stands, and only there.
func TestLeaks(t *testing.T) {
	t.Parallel()
	p := compile(t, [2]string{"internal/hidden", hidden}, [2]string{"open", open})
	assert.Equal(t, []string{
		"pkg open, func Constrained[P internal/hidden.Constraint](p P)",
		"pkg open, func Instance() Generic[internal/hidden.T]",
		"pkg open, method (Struct) Takes(list ...internal/hidden.T)",
		"pkg open, type Alias = internal/hidden.T",
		"pkg open, type Func func(map[string]internal/hidden.T)",
		"pkg open, type Interface interface, Gives() [1]internal/hidden.T",
		"pkg open, type Struct struct, Field chan internal/hidden.T",
		"pkg open, type Struct struct, T internal/hidden.T",
		"pkg open, var Variable []*internal/hidden.T",
	}, publicapi.Leaks([]*types.Package{p}))
}

// A line stands for each name: what is not exported is left out, what is promoted is there.
func TestLines(t *testing.T) {
	t.Parallel()
	p := compile(t, [2]string{"internal/hidden", hidden}, [2]string{"open", open})
	lines := publicapi.Lines([]*types.Package{p})
	for _, want := range []string{
		"pkg open, const Constant untyped int = 1",
		"pkg open, func Hidden(x any)",
		"pkg open, method (*Struct) Clear()",
		"pkg open, method (Struct) Method()",
		"pkg open, type Generic[P any] struct, Value P",
		"pkg open, type Struct struct, Clean int",
		"pkg open, type Struct struct, embedded internal/hidden.T",
	} {
		assert.Contains(t, lines, want)
	}
	for _, line := range lines {
		assert.NotContains(t, line, "private")
	}
}

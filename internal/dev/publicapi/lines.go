package publicapi

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// Lines are the lines of api.txt: one a name that packages export, sorted.
func Lines(packages []*types.Package) []string {
	var lines []string
	for _, p := range packages {
		e := &exported{prefix: "pkg " + short(p) + ", ", own: p}
		for _, name := range p.Scope().Names() {
			if object := p.Scope().Lookup(name); object.Exported() {
				e.object(object)
			}
		}
		lines = append(lines, e.lines...)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// exported collects the lines of one package.
type exported struct {
	prefix string
	own    *types.Package
	lines  []string
}

func (e *exported) add(format string, args ...any) {
	e.lines = append(e.lines, e.prefix+fmt.Sprintf(format, args...))
}

// name qualifies a type as the package's own code would; packages of the module are named by their
// path in it.
func (e *exported) name(p *types.Package) string {
	if p == e.own {
		return ""
	}
	return short(p)
}

func (e *exported) text(t types.Type) string { return types.TypeString(t, e.name) }

func (e *exported) object(object types.Object) {
	switch o := object.(type) {
	case *types.Const:
		e.add("const %s %s = %s", o.Name(), e.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		e.add("var %s %s", o.Name(), e.text(o.Type()))
	case *types.Func:
		e.add("func %s%s", o.Name(), e.signature(o.Type()))
	case *types.TypeName:
		e.typeName(o)
	}
}

// signature is a function's type without the word func.
func (e *exported) signature(t types.Type) string { return strings.TrimPrefix(e.text(t), "func") }

func (e *exported) typeName(o *types.TypeName) {
	if o.IsAlias() {
		t := o.Type()
		if alias, ok := t.(*types.Alias); ok {
			t = alias.Rhs()
		}
		e.add("type %s = %s", o.Name(), e.text(t))
		return
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		e.add("type %s %s", o.Name(), e.text(o.Type()))
		return
	}
	name := o.Name()
	if parameters := named.TypeParams(); parameters.Len() > 0 {
		name = e.text(named)
	}
	switch t := named.Underlying().(type) {
	case *types.Struct:
		e.add("type %s struct", name)
		for field := range t.Fields() {
			switch {
			case field.Embedded():
				e.add("type %s struct, embedded %s", name, e.text(field.Type()))
			case field.Exported():
				e.add("type %s struct, %s %s", name, field.Name(), e.text(field.Type()))
			}
		}
	case *types.Interface:
		e.add("type %s interface", name)
		for method := range t.Methods() {
			if method.Exported() {
				e.add("type %s interface, %s%s", name, method.Name(), e.signature(method.Type()))
			} else {
				e.add("type %s interface, unexported methods", name)
			}
		}
		if !t.IsMethodSet() {
			e.add("type %s %s", name, e.text(t))
		}
		return
	default:
		e.add("type %s %s", name, e.text(t))
	}
	e.methods(o.Name(), named)
}

// methods are those of a type and of a pointer to it, also the promoted ones.
func (e *exported) methods(name string, named *types.Named) {
	ofValue := types.NewMethodSet(named)
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		method := selection.Obj()
		if !method.Exported() {
			continue
		}
		receiver := "*" + name
		if ofValue.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = name
		}
		e.add("method (%s) %s%s", receiver, method.Name(), e.signature(selection.Type()))
	}
}

// short is a package's path in the module, and the whole path of a package of others.
func short(p *types.Package) string { return strings.TrimPrefix(p.Path(), Module+"/") }

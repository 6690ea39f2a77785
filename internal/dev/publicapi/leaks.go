package publicapi

import (
	"go/types"
	"slices"
)

// Leaks are the lines of api.txt whose types name a type of an internal package, sorted. A program
// that uses such a name cannot write its type, and the documentation does not show what it has.
func Leaks(packages []*types.Package) []string {
	var leaks []string
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			object := p.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			e := &exported{prefix: "pkg " + short(p) + ", ", own: p}
			if leaksObject(object) {
				e.object(object)
				leaks = append(leaks, e.lines[0])
			}
			leaks = append(leaks, e.leakingMembers(object)...)
		}
	}
	slices.Sort(leaks)
	return slices.Compact(leaks)
}

// leaksObject reports whether an object's own type does; a type's members are looked at one by one.
func leaksObject(object types.Object) bool {
	o, ok := object.(*types.TypeName)
	if !ok {
		return leaks(object.Type())
	}
	if o.IsAlias() {
		return leaks(types.Unalias(o.Type()))
	}
	switch t := o.Type().Underlying().(type) {
	case *types.Struct, *types.Interface:
		return false
	default:
		return leaks(t)
	}
}

// leakingMembers are the lines of a type's fields and methods that leak.
func (e *exported) leakingMembers(object types.Object) []string {
	o, ok := object.(*types.TypeName)
	if !ok || o.IsAlias() {
		return nil
	}
	named, ok := o.Type().(*types.Named)
	if !ok {
		return nil
	}
	found := &exported{prefix: e.prefix, own: e.own}
	switch t := named.Underlying().(type) {
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() && leaks(field.Type()) {
				found.add("type %s struct, %s %s", o.Name(), field.Name(), e.text(field.Type()))
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			if leaks(method.Type()) {
				found.add("type %s interface, %s%s", o.Name(), method.Name(), e.signature(method.Type()))
			}
		}
	}
	for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		if selection.Obj().Exported() && leaks(selection.Type()) {
			found.add("method (%s) %s%s", o.Name(), selection.Obj().Name(), e.signature(selection.Type()))
		}
	}
	return found.lines
}

// leaks reports whether a type is of an internal package, or is made of one that is. An alias leaks
// where it is declared, not at each use.
func leaks(t types.Type) bool {
	switch t := t.(type) {
	case *types.Alias:
		return internal(pathOf(t.Obj()))
	case *types.Named:
		if internal(pathOf(t.Obj())) {
			return true
		}
		for argument := range t.TypeArgs().Types() {
			if leaks(argument) {
				return true
			}
		}
	case *types.Pointer:
		return leaks(t.Elem())
	case *types.Slice:
		return leaks(t.Elem())
	case *types.Array:
		return leaks(t.Elem())
	case *types.Chan:
		return leaks(t.Elem())
	case *types.Map:
		return leaks(t.Key()) || leaks(t.Elem())
	case *types.Signature:
		return leaksTuple(t.Params()) || leaksTuple(t.Results()) || leaksParameters(t.TypeParams())
	case *types.Struct:
		for field := range t.Fields() {
			if leaks(field.Type()) {
				return true
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			if leaks(method.Type()) {
				return true
			}
		}
	}
	return false
}

// pathOf is the path of an object's package; empty: it is predeclared.
func pathOf(o types.Object) string {
	if o.Pkg() == nil {
		return ""
	}
	return o.Pkg().Path()
}

func leaksTuple(t *types.Tuple) bool {
	for v := range t.Variables() {
		if leaks(v.Type()) {
			return true
		}
	}
	return false
}

func leaksParameters(list *types.TypeParamList) bool {
	for p := range list.TypeParams() {
		if leaks(p.Constraint()) {
			return true
		}
	}
	return false
}

package posting

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/daybook-dev/daybook/models"
)

// typeSystem tells CEL the types of our objects and how to read them. Everything else is CEL's own
// registry.
type typeSystem struct{ *types.Registry }

// FindStructType implements types.Provider.
func (t typeSystem) FindStructType(name string) (*types.Type, bool) {
	if o := objectByName(name); o != nil {
		return types.NewTypeTypeWithParam(o.typ), true
	}
	return t.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (t typeSystem) FindStructFieldNames(name string) ([]string, bool) {
	if o := objectByName(name); o != nil {
		return o.names(), true
	}
	return t.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (t typeSystem) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	o := objectByName(name)
	if o == nil {
		return t.Registry.FindStructFieldType(name, fieldName)
	}
	f := o.lookup(fieldName)
	if f == nil {
		return nil, false
	}
	return &types.FieldType{Type: f.typ, IsSet: f.present, GetFrom: f.value}, true
}

// NewValue implements types.Provider. Rules read documents and never make one.
func (t typeSystem) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if objectByName(name) != nil {
		return types.NewErr("%s cannot be made in a rule", name)
	}
	return t.Registry.NewValue(name, fields)
}

// NativeToValue implements types.Adapter. It is reached only by expressions that use an object or a
// list as a whole; reading a field of a variable goes to the field's getter directly.
func (t typeSystem) NativeToValue(value any) ref.Val {
	switch v := value.(type) {
	case *models.Document:
		return objectValue{documentObject, v}
	case *models.Line:
		return objectValue{lineObject, v}
	case *models.Tax:
		return objectValue{taxObject, v}
	case *models.Money:
		return objectValue{moneyObject, v}
	case []models.Line:
		return listValue(t, lineObject, v)
	case []models.Tax:
		return listValue(t, taxObject, v)
	case map[string]string:
		return types.NewStringStringMap(t, v)
	}
	return t.Registry.NativeToValue(value)
}

func objectByName(name string) *object {
	for _, o := range objects {
		if o.typ.TypeName() == name {
			return o
		}
	}
	return nil
}

func listValue[T any](t typeSystem, o *object, elements []T) ref.Val {
	values := make([]ref.Val, len(elements))
	for i := range elements {
		values[i] = objectValue{o, &elements[i]}
	}
	return types.NewRefValList(t, values)
}

// objectValue is one of our structs where CEL wants a value of its own.
type objectValue struct {
	object *object
	native any // a pointer to the struct
}

// ConvertToNative implements ref.Val.
func (v objectValue) ConvertToNative(typeDesc reflect.Type) (any, error) {
	if reflect.TypeOf(v.native).AssignableTo(typeDesc) {
		return v.native, nil
	}
	return nil, fmt.Errorf("%s cannot be converted to %v", v.object.typ, typeDesc)
}

// ConvertToType implements ref.Val.
func (v objectValue) ConvertToType(typeVal ref.Type) ref.Val {
	switch typeVal.TypeName() {
	case v.object.typ.TypeName():
		return v
	case types.TypeType.TypeName():
		return v.object.typ
	}
	return types.NewErr("%s cannot be converted to %s", v.object.typ, typeVal.TypeName())
}

// Equal implements ref.Val.
func (v objectValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(objectValue)
	return types.Bool(ok && o.object == v.object && reflect.DeepEqual(v.native, o.native))
}

// Type implements ref.Val.
func (v objectValue) Type() ref.Type { return v.object.typ }

// Value implements ref.Val.
func (v objectValue) Value() any { return v.native }

// Get implements traits.Indexer.
func (v objectValue) Get(index ref.Val) ref.Val {
	f := v.field(index)
	if f == nil {
		return types.NewErr("%s has no such field: %v", v.object.typ, index)
	}
	got, err := f.value(v.native)
	if err != nil {
		return types.WrapErr(err)
	}
	if val, ok := got.(ref.Val); ok {
		return val
	}
	return ruleTypes.NativeToValue(got)
}

// IsSet implements traits.FieldTester.
func (v objectValue) IsSet(index ref.Val) ref.Val {
	f := v.field(index)
	if f == nil {
		return types.NewErr("%s has no such field: %v", v.object.typ, index)
	}
	return types.Bool(f.present(v.native))
}

func (v objectValue) field(index ref.Val) *field {
	name, ok := index.(types.String)
	if !ok {
		return nil
	}
	return v.object.lookup(string(name))
}

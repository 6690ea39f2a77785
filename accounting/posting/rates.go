package posting

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/daybook-dev/daybook/models"
)

// rateType is the type of an exact percentage in expressions.
var rateType = cel.ObjectType("daybook.Rate", traits.ComparerType)

// rateLanguage declares rate("9.975"), rate(19) and the comparison of rates; == and in are CEL's
// own.
func rateLanguage() []cel.EnvOption {
	options := []cel.EnvOption{
		cel.Function("rate",
			cel.Overload("rate_string", []*cel.Type{cel.StringType}, rateType, cel.UnaryBinding(rateOf)),
			cel.Overload("rate_int", []*cel.Type{cel.IntType}, rateType, cel.UnaryBinding(rateOf))),
	}
	for operator, id := range map[string]string{
		operators.Less: "less_rate", operators.LessEquals: "less_equals_rate",
		operators.Greater: "greater_rate", operators.GreaterEquals: "greater_equals_rate",
	} {
		options = append(options, cel.Function(operator, cel.Overload(id, []*cel.Type{rateType, rateType}, cel.BoolType)))
	}
	return options
}

// rateOf is the function rate.
func rateOf(v ref.Val) ref.Val {
	var text string
	switch v := v.(type) {
	case types.String:
		text = string(v)
	case types.Int:
		text = fmt.Sprint(int64(v))
	default:
		return types.MaybeNoSuchOverloadErr(v)
	}
	r, err := models.ParseRate(text)
	if err != nil {
		return types.WrapErr(err)
	}
	return rateValue(r)
}

// rateValue is a rate as a value of CEL.
type rateValue models.Rate

// ConvertToNative implements ref.Val.
func (v rateValue) ConvertToNative(typeDesc reflect.Type) (any, error) {
	if reflect.TypeFor[models.Rate]().AssignableTo(typeDesc) {
		return models.Rate(v), nil
	}
	return nil, fmt.Errorf("a rate cannot be converted to %v", typeDesc)
}

// ConvertToType implements ref.Val.
func (v rateValue) ConvertToType(typeVal ref.Type) ref.Val {
	switch typeVal.TypeName() {
	case rateType.TypeName():
		return v
	case types.TypeType.TypeName():
		return rateType
	}
	return types.NewErr("a rate cannot be converted to %s", typeVal.TypeName())
}

// Equal implements ref.Val.
func (v rateValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(rateValue)
	return types.Bool(ok && o == v)
}

// Compare implements traits.Comparer.
func (v rateValue) Compare(other ref.Val) ref.Val {
	o, ok := other.(rateValue)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(models.Rate(v).Compare(models.Rate(o)))
}

// Type implements ref.Val.
func (v rateValue) Type() ref.Type { return rateType }

// Value implements ref.Val.
func (v rateValue) Value() any { return models.Rate(v) }

// String is how messages show the value.
func (v rateValue) String() string { return models.Rate(v).String() }

// rateFields are the fields of an object that has a rate: rate itself, and rate_bp in whole basis
// points, as rules read it before rates had decimals. A finer rate has no rate_bp: a rounded one
// could choose another account.
func rateFields[T any](get func(*T) models.Rate) []*field {
	present := func(o *T) bool { return !get(o).IsZero() }
	return []*field{
		anyField("rate", rateType, func(o *T) (any, error) { return rateValue(get(o)), nil }, present),
		anyField("rate_bp", cel.IntType, func(o *T) (any, error) {
			n, whole := get(o).BasisPoints()
			if !whole {
				return nil, fmt.Errorf("the rate %v %% has no whole number of basis points: compare rate with rate(%q) "+
					"instead of rate_bp", get(o), get(o))
			}
			return types.Int(n), nil
		}, present),
	}
}

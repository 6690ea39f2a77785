package posting

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/daybook-dev/daybook/models"
)

// roundingType is the type of the rounding modes. It has no other values and no literal: a misspelt
// mode is an unknown name when the rule set is compiled.
var roundingType = cel.OpaqueType("daybook.Rounding")

// roundingMode is how an exact amount becomes a whole number of minor units. Each mode treats a
// negative amount as the positive one, with the sign changed.
type roundingMode string

const (
	halfUp   roundingMode = "half_up"   // to the nearer; of two equally near the greater, away from zero
	halfEven roundingMode = "half_even" // to the nearer; of two equally near the even one
	down     roundingMode = "down"      // the fraction is cut off, towards zero
)

var roundingModes = []roundingMode{halfUp, halfEven, down}

func roundingNames() string {
	names := make([]string, len(roundingModes))
	for i, m := range roundingModes {
		names[i] = string(m)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// arithmeticLanguage declares percent(amount, rate, mode) and sum(list).
func arithmeticLanguage() []cel.EnvOption {
	options := []cel.EnvOption{
		cel.Function("percent", cel.Overload("percent_int_rate_rounding",
			[]*cel.Type{cel.IntType, rateType, roundingType}, cel.IntType, cel.FunctionBinding(percentOf))),
		cel.Function("sum", cel.Overload("sum_list_int",
			[]*cel.Type{cel.ListType(cel.IntType)}, cel.IntType, cel.UnaryBinding(sumOf))),
	}
	for _, m := range roundingModes {
		options = append(options, cel.Variable(string(m), roundingType))
	}
	return options
}

// percentOf is the function percent.
func percentOf(args ...ref.Val) ref.Val {
	amount, isAmount := args[0].(types.Int)
	rate, isRate := args[1].(rateValue)
	mode, isMode := args[2].(roundingValue)
	if !isAmount || !isRate || !isMode {
		return types.NewErr("no such overload: percent")
	}
	result, ok := percent(int64(amount), models.Rate(rate), mode.mode)
	if !ok {
		return types.NewErr("integer overflow: %v %% of %d is more than 64 bits hold", rate, amount)
	}
	return types.Int(result)
}

// percent returns so many percent of the amount, rounded by the mode; false: 64 bits do not hold
// it.
func percent(amount int64, rate models.Rate, mode roundingMode) (int64, bool) {
	numerator, denominator := rate.Fraction()
	quotient, remainder, ok := proportion(magnitude(amount), magnitude(numerator), uint64(denominator))
	if !ok {
		return 0, false
	}
	switch rest := uint64(denominator) - remainder; { // the remainder is over the half where it is over the rest
	case mode == down:
	case remainder > rest, remainder == rest && (mode == halfUp || quotient%2 == 1):
		quotient++
	}
	return signed(quotient, (amount < 0) != (numerator < 0))
}

// proportion returns amount × part / whole, cut to a whole number, and the remainder; false: 64
// bits do not hold it.
func proportion(amount, part, whole uint64) (quotient, remainder uint64, ok bool) {
	high, low := bits.Mul64(amount, part)
	if high >= whole {
		return 0, 0, false
	}
	quotient, remainder = bits.Div64(high, low, whole)
	return quotient, remainder, true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n) // two's complement: right for the least int64 as well
	}
	return uint64(n)
}

// signed gives a magnitude its sign; false: 64 bits do not hold it.
func signed(n uint64, negative bool) (int64, bool) {
	if negative {
		return int64(-n), n <= 1<<63
	}
	return int64(n), n <= math.MaxInt64
}

// sumOf is the function sum.
func sumOf(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	sum := types.IntZero
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch next := sum.Add(it.Next()).(type) {
		case types.Int:
			sum = next
		default:
			return next // an overflow
		}
	}
	return sum
}

// listCosts counts a step for each element that sum adds: by itself, CEL counts one for each call
// of a function.
type listCosts struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (listCosts) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function != "sum" || len(args) != 1 {
		return nil
	}
	list, ok := args[0].(traits.Sizer)
	if !ok {
		return nil
	}
	size, ok := list.Size().(types.Int)
	if !ok {
		return nil
	}
	return new(1 + uint64(size))
}

// roundingValue is a rounding mode as a value of CEL.
type roundingValue struct {
	types.String
	mode roundingMode
}

// roundingValues are the values that expressions see by name.
var roundingValues = func() map[string]ref.Val {
	values := map[string]ref.Val{}
	for _, m := range roundingModes {
		values[string(m)] = roundingValue{types.String(m), m}
	}
	return values
}()

// Type implements ref.Val.
func (roundingValue) Type() ref.Type { return roundingType }

// Equal implements ref.Val.
func (v roundingValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(roundingValue)
	return types.Bool(ok && o.mode == v.mode)
}

// unmatched says for a call of a function of ours what its arguments are; empty: it is none of
// ours.
func unmatched(message string) string {
	switch {
	case strings.Contains(message, "'percent'"):
		return fmt.Sprintf("; want percent(amount, rate, mode), as in percent(line.net, rate(\"19\"), half_up): the mode "+
			"is %s, without quotes", roundingNames())
	case strings.Contains(message, "'sum'"):
		return "; want the sum of a list of amounts, as in sum(doc.lines.map(l, l.net))"
	case strings.Contains(message, "'rate'"):
		return `; write a rate as a text in decimal digits: rate("9.975")`
	case strings.Contains(message, "double"):
		return "; floating point numbers are refused: take a percentage with percent(amount, rate, mode)"
	case strings.Contains(message, rateType.TypeName()):
		return `; a rate is compared with rate("9.975"), or with another rate`
	}
	return ""
}

package posting

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/daybook-dev/daybook/models"
)

// What an expression may cost. An expression without a comprehension does work in proportion to its
// own length, which maxExpressionRunes bounds, so it runs unmeasured: measuring would cost more
// than the expression. A comprehension (exists, all, map, filter …) multiplies by the document's
// lines, so it runs under CEL's cost tracker.
const (
	maxSourceBytes     = 1 << 20
	maxExpressionRunes = 4096
	// maxExpressionCost bounds one evaluation of one comprehension, in CEL cost units (about one for
	// each operation). A sum over the lines with a condition takes 25 a line, and a document may have
	// 100,000 lines.
	maxExpressionCost = 6_000_000
	// documentCost bounds all comprehensions that are evaluated for one document, beside lineCost for
	// each of its lines.
	documentCost = 5_000_000
	lineCost     = 100
)

// documentVariable is the name under which every expression sees the document.
const documentVariable = "doc"

var ruleTypes = func() typeSystem {
	registry, err := types.NewRegistry()
	if err != nil {
		panic(err) // the registry takes no input of ours
	}
	return typeSystem{registry}
}()

// baseEnvironment is the language of expressions that run once for each document.
var baseEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(append(append(rateLanguage(), arithmeticLanguage()...),
		cel.CustomTypeAdapter(ruleTypes),
		cel.CustomTypeProvider(ruleTypes),
		cel.Variable(documentVariable, documentObject.typ),
		cel.ParserExpressionSizeLimit(maxExpressionRunes),
		cel.DefaultUTCTimeZone(true),
		cel.Function("date", cel.Overload("date_string", []*cel.Type{cel.StringType}, cel.TimestampType,
			cel.UnaryBinding(dateOf))),
	)...)
})

// environment is the language of one set of variables: doc, and the element that a rule line runs
// over, if any.
type environment struct {
	env     *cel.Env
	name    string  // of the element variable; empty: there is none
	element *object // type of the element
}

func newEnvironment(name string, element *object) (*environment, error) {
	env, err := baseEnvironment()
	if err == nil && element != nil {
		env, err = env.Extend(cel.Variable(name, element.typ))
	}
	if err != nil {
		return nil, err
	}
	return &environment{env: env, name: name, element: element}, nil
}

// everyVariable is the language with all variables by their usual names.
var everyVariable = sync.OnceValues(func() (*cel.Env, error) {
	base, err := baseEnvironment()
	if err != nil {
		return nil, err
	}
	return base.Extend(cel.Variable("line", lineObject.typ), cel.Variable("tax", taxObject.typ))
})

// isExpression reports whether a text is an expression that reads the document or calls a function,
// and no plain name or number. env has the variables at its place; nil: the usual ones.
func isExpression(text string, env *environment) bool {
	if !strings.ContainsAny(text, ".[(?=+") {
		return false
	}
	all, err := everyVariable()
	if err != nil {
		return false
	}
	environments := []*cel.Env{all}
	if env != nil {
		environments = append(environments, env.env)
	}
	for _, e := range environments {
		checked, issues := e.Compile(text)
		if issues.Err() == nil && checked.NativeRep().Expr().Kind() != ast.LiteralKind {
			return true
		}
	}
	return false
}

// object returns the type of a variable, or nil if the environment has no such variable.
func (e *environment) object(variable string) *object {
	switch {
	case variable == documentVariable:
		return documentObject
	case variable == e.name && e.name != "":
		return e.element
	}
	return nil
}

// dateOf is the function date("2025-01-31").
func dateOf(v ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	d, err := models.ParseDate(string(s))
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Timestamp{Time: d.Time()}
}

// scope holds the variables of one document while it is evaluated. It implements cel.Activation.
type scope struct {
	doc     *models.Document
	name    string
	element any    // *models.Line or *models.Tax; nil: no element is in scope
	spent   uint64 // cost of the comprehensions so far
}

// ResolveName implements cel.Activation.
func (s *scope) ResolveName(name string) (any, bool) {
	if name == documentVariable {
		return s.doc, true
	}
	if s.element != nil && name == s.name {
		return s.element, true
	}
	mode, ok := roundingValues[name]
	return mode, ok
}

// Parent implements cel.Activation.
func (s *scope) Parent() cel.Activation { return nil }

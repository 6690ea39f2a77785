package posting

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/daybook-dev/daybook/models"
)

// expression is a compiled expression. Most of a rule set's expressions are a plain field such as
// doc.payable or a constant; these never reach the interpreter.
type expression struct {
	place    Place
	program  cel.Program
	measured bool    // program runs under the cost tracker
	constant ref.Val // set: the value, whatever the document
	plain    *field  // set: this field of the document, or of the element if element is true
	element  bool

	reads []reference // the fields that the expression reads, for error messages
}

// reference is one field of one variable.
type reference struct {
	variable string
	field    *field
}

// compileExpression type-checks the text and compiles it. The problems it reports have a place and
// a message.
func compileExpression(env *environment, text scalar, want *cel.Type, what string) (*expression, []Problem) {
	refuse := func(at Place, format string, args ...any) []Problem {
		return []Problem{{Place: at, Message: what + ": " + fmt.Sprintf(format, args...)}}
	}
	checked, issues := env.env.Compile(text.value)
	if err := issues.Err(); err != nil {
		var problems []Problem
		for _, e := range issues.Errors() {
			at := text.at(e.Location.Line(), e.Location.Column())
			problems = append(problems, refuse(at, "%s", explain(e.Message, env))...)
		}
		if len(problems) == 0 {
			problems = refuse(text.place, "%v", err)
		}
		return nil, problems
	}
	tree := checked.NativeRep()
	if p := forbidden(tree); p != "" {
		return nil, refuse(text.place, "%s", p)
	}
	var problems []Problem
	for id, message := range misstated(tree) {
		at := tree.SourceInfo().GetStartLocation(id)
		problems = append(problems, refuse(text.at(at.Line(), at.Column()), "%s", message)...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	if got := checked.OutputType(); !got.IsExactType(want) {
		return nil, refuse(text.place, "the expression gives %s; want %s%s", typeName(got), typeName(want),
			wantedHint(want))
	}
	x := &expression{place: text.place, reads: references(tree, env)}
	root := tree.Expr()
	if root.Kind() == ast.LiteralKind {
		x.constant = root.AsLiteral()
		return x, nil
	}
	if f, variable := plainField(root, env); f != nil && (f.integer != nil || f.text != nil || f.date != nil) {
		x.plain, x.element = f, variable != documentVariable
		return x, nil
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if hasComprehension(tree) {
		x.measured = true
		options = append(options, cel.CostLimit(maxExpressionCost), cel.CostTracking(listCosts{}))
	}
	program, err := env.env.Program(checked, options...)
	if err != nil {
		return nil, refuse(text.place, "%v", err)
	}
	x.program = program
	return x, nil
}

// eval runs the program in the scope.
func (x *expression) eval(s *scope) (ref.Val, error) {
	if x.constant != nil {
		return x.constant, nil
	}
	value, details, err := x.program.Eval(s)
	if err != nil {
		return nil, errors.New(explainRuntime(err))
	}
	if x.measured {
		if cost := details.ActualCost(); cost != nil {
			s.spent += *cost
		}
		if most := documentCost + lineCost*uint64(len(s.doc.Content.Lines)); s.spent > most {
			return nil, fmt.Errorf("the rules take more than %d steps for this document; simplify their list macros", most)
		}
	}
	return value, nil
}

func (x *expression) bool(s *scope) (bool, error) {
	v, err := x.eval(s)
	if err != nil {
		return false, err
	}
	return v == types.True, nil
}

func (x *expression) integer(s *scope) (int64, error) {
	if x.plain != nil {
		return x.plain.integer(x.object(s)), nil
	}
	v, err := x.eval(s)
	if err != nil {
		return 0, err
	}
	i, ok := v.(types.Int)
	if !ok {
		return 0, fmt.Errorf("the expression gave %s; want an integer", v.Type().TypeName())
	}
	return int64(i), nil
}

func (x *expression) text(s *scope) (string, error) {
	if x.plain != nil {
		return x.plain.text(x.object(s)), nil
	}
	v, err := x.eval(s)
	if err != nil {
		return "", err
	}
	t, ok := v.(types.String)
	if !ok {
		return "", fmt.Errorf("the expression gave %s; want a string", v.Type().TypeName())
	}
	return string(t), nil
}

func (x *expression) date(s *scope) (models.Date, error) {
	if x.plain != nil {
		d := x.plain.date(x.object(s))
		if d.IsZero() {
			return d, errNoDate
		}
		return d, nil
	}
	v, err := x.eval(s)
	if err != nil {
		return models.Date{}, err
	}
	t, ok := v.(types.Timestamp)
	if !ok {
		return models.Date{}, fmt.Errorf("the expression gave %s; want a date", v.Type().TypeName())
	}
	u := t.UTC()
	if !u.Equal(u.Truncate(24 * time.Hour)) {
		return models.Date{}, fmt.Errorf("the expression gave the time %s; want a day: use date(\"YYYY-MM-DD\") and "+
			"whole days", u.Format(time.RFC3339Nano))
	}
	d := models.NewDate(u.Year(), u.Month(), u.Day())
	if err := d.Check(); err != nil {
		return d, fmt.Errorf("the expression gave the %w", err)
	}
	return d, nil
}

func (x *expression) object(s *scope) any {
	if x.element {
		return s.element
	}
	return s.doc
}

// typeName is what a reader of a rule set calls the type.
func typeName(t *cel.Type) string {
	switch {
	case t.IsExactType(cel.IntType):
		return "an integer (minor units)"
	case t.IsExactType(cel.TimestampType):
		return "a date"
	case t.IsExactType(rateType):
		return "a rate"
	}
	return t.String()
}

// wantedHint shows what gives the type, where people write something else.
func wantedHint(want *cel.Type) string {
	if want.IsExactType(cel.TimestampType) {
		return `, such as doc.value_date or date("2025-07-01")`
	}
	return ""
}

// explain turns a message of the type checker into one that says what to do.
func explain(message string, env *environment) string {
	message = strings.TrimSpace(message)
	name, ok := strings.CutPrefix(message, "undefined field '")
	if !ok {
		if strings.HasPrefix(message, "undeclared reference to") {
			vars := documentVariable
			if env.name != "" {
				vars += " and " + env.name
			}
			if name, _, quoted := strings.Cut(strings.TrimPrefix(message, "undeclared reference to '"), "'"); quoted {
				if _, ok := models.MinorDigits(name); ok {
					return fmt.Sprintf("%s; a currency is a text within the expression: '\"%s\"'", message, name)
				}
			}
			return fmt.Sprintf("%s; the variables here are: %s; the rounding modes are %s", message, vars, roundingNames())
		}
		if strings.HasPrefix(message, "found no matching overload for") {
			return message + unmatched(message)
		}
		return message
	}
	name = strings.TrimSuffix(name, "'")
	fields := "doc has " + strings.Join(documentObject.names(), ", ")
	if env.element != nil {
		fields = env.name + " has " + strings.Join(env.element.names(), ", ") + "; " + fields
	}
	return fmt.Sprintf("there is no field %s; %s", name, fields)
}

func explainRuntime(err error) string {
	message := err.Error()
	if key, ok := strings.CutPrefix(message, "no such key: "); ok {
		return fmt.Sprintf("%s; ask first: %q in doc.attributes", message, key)
	}
	if strings.Contains(message, "cost limit exceeded") {
		return fmt.Sprintf("it takes more than %d steps for this document; simplify its list macros", maxExpressionCost)
	}
	return message
}

package posting

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// forbidden says what the expression does that rules may not do, or returns the empty string.
func forbidden(tree *ast.AST) string {
	for _, t := range tree.TypeMap() {
		if t.Kind() == types.DoubleKind {
			return "it uses a floating point number; compute in whole minor units, and take a percentage with " +
				"percent(amount, rate, mode)"
		}
	}
	message := ""
	visit(tree, func(e ast.Expr) {
		if e.Kind() == ast.StructKind {
			message = "it makes an object; rules only read the document"
		}
	})
	return message
}

// misstated finds the calls of our own functions with a constant that they refuse, such as
// date("2025-02-30"), which would otherwise stop each document. The result is the message by the id
// of the constant.
func misstated(tree *ast.AST) map[int64]string {
	found := map[int64]string{}
	visit(tree, func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 1 {
			return
		}
		f, argument := constantFunctions[e.AsCall().FunctionName()], e.AsCall().Args()[0]
		if f == nil || argument.Kind() != ast.LiteralKind {
			return
		}
		if err, failed := f(argument.AsLiteral()).(*types.Err); failed {
			found[argument.ID()] = err.Error()
		}
	})
	return found
}

// constantFunctions are our functions of one argument, which is mostly a constant.
var constantFunctions = map[string]func(ref.Val) ref.Val{"date": dateOf, "rate": rateOf}

// hasComprehension reports whether the expression loops over a list or map.
func hasComprehension(tree *ast.AST) bool {
	found := false
	visit(tree, func(e ast.Expr) { found = found || e.Kind() == ast.ComprehensionKind })
	return found
}

// plainField returns the field if the whole expression is variable.field, and the variable's name.
func plainField(e ast.Expr, env *environment) (*field, string) {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().Operand().Kind() != ast.IdentKind {
		return nil, ""
	}
	variable := e.AsSelect().Operand().AsIdent()
	o := env.object(variable)
	if o == nil {
		return nil, ""
	}
	return o.lookup(e.AsSelect().FieldName()), variable
}

// references lists the plain fields that an expression reads, each once, in order of appearance.
func references(tree *ast.AST, env *environment) []reference {
	var found []reference
	visit(tree, func(e ast.Expr) {
		if f, variable := plainField(e, env); f != nil {
			if r := (reference{variable, f}); !slices.Contains(found, r) {
				found = append(found, r)
			}
		}
	})
	return found
}

func visit(tree *ast.AST, each func(ast.Expr)) {
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(each))
}

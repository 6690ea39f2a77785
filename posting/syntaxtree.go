package posting

import (
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// forbidden says what the expression does that rules may not do, or returns the empty string.
func forbidden(tree *ast.AST) string {
	for _, t := range tree.TypeMap() {
		if t.Kind() == types.DoubleKind {
			return "it uses a floating point number; compute in whole minor units and basis points"
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

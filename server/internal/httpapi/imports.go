package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// undoneAtOnce is how many documents a request undoes, at most.
const undoneAtOnce = 2000

// imports adds what was imported, and how it is taken back.
func (s *server) imports() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listImports", Method: http.MethodGet, Path: "/api/imports", Tags: []string{tagLedger},
		Summary: "List imports, the latest first",
	}, s.listImports, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "undoImport", Method: http.MethodPost, Path: "/api/imports/{importId}/undo", Tags: []string{tagLedger},
		Summary: "Take back what an import wrote",
		Description: "A document that the import made and that was never posted is removed; what is posted is reversed by the " +
			"workers. A document that it changed gets its former content again. What was changed since is kept, and so is " +
			"what is posted in a closed period, unless the organization posts on the first open day. " +
			"A request looks at 2,000 documents at most: send its nextCursor until there is none.",
		Metadata: map[string]any{exampleKey: `{"dryRun": true}`, actionKey: "imports.undo"},
	}, s.undoImport, http.StatusNotFound)
}

type listImportsInput struct {
	PageInput
	OrgID string `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
}

type listImportsOutput struct {
	Body struct{ answers.ImportList }
}

func (s *server) listImports(ctx context.Context, in *listImportsInput) (*listImportsOutput, error) {
	o := books.ImportsOptions{Limit: in.Limit + 1}
	if err := in.decode(&o.Before); err != nil {
		return nil, err
	}
	var err error
	if o.OrgID, err = caller(ctx).reach(in.OrgID); err != nil {
		return nil, err
	}
	list, err := books.Imports(ctx, s.pool, o)
	if err != nil {
		return nil, err
	}
	out := &listImportsOutput{}
	list, next := page(in.PageInput, list, func(i models.Import) any { return i.ID })
	out.Body.ImportList = answers.ImportListOf(list, next)
	return out, nil
}

type undoImportInput struct {
	ImportID int64  `path:"importId" minimum:"1"`
	OrgID    string `query:"orgId" maxLength:"255" doc:"Refuse an import that is another organization's; default that of the token"`
	Body     *struct {
		DryRun bool   `json:"dryRun,omitempty" doc:"Change nothing, and say what would be done"`
		Cursor string `json:"cursor,omitempty" maxLength:"2000" doc:"nextCursor of the request before"`
	}
}

type undoImportOutput struct {
	Body struct{ answers.Undone }
}

func (s *server) undoImport(ctx context.Context, in *undoImportInput) (*undoImportOutput, error) {
	o := books.UndoOptions{Limit: undoneAtOnce}
	var err error
	if o.OrgID, err = caller(ctx).reach(in.OrgID); err != nil {
		return nil, err
	}
	if in.Body != nil {
		o.DryRun = in.Body.DryRun
		if err := (PageInput{Cursor: in.Body.Cursor}).decode(&o.After); err != nil {
			return nil, err
		}
	}
	if o.DryRun {
		actions.Drop(ctx)
	}
	subject := strconv.FormatInt(in.ImportID, 10)
	actions.About(ctx, o.OrgID, subject, nil)
	done, err := books.UndoImport(ctx, s.pool, in.ImportID, o)
	actions.About(ctx, done.Import.OrgID, subject, map[string]any{
		"removed": done.Removed, "reversed": done.Reversed, "restored": done.Restored, "kept": len(done.Kept),
	})
	if err != nil {
		return nil, err
	}
	next := ""
	if done.Next != "" {
		next = cursor.Of(done.Next)
	}
	out := &undoImportOutput{}
	out.Body.Undone = answers.UndoneOf(&done.Import, done.Removed, done.Reversed, done.Restored, done.Kept, done.Failing, next, o.DryRun)
	return out, nil
}

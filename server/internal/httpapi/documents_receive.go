package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// maxReceivedBytes is how long an electronic invoice may be.
const maxReceivedBytes = 8 << 20

// received adds electronic invoices that come one by one.
func (s *server) received() {
	operation(s, tokens.ScopeEnqueue, huma.Operation{
		OperationID: "receiveDocument", Method: http.MethodPost, Path: "/api/documents", Tags: []string{tagLedger},
		Summary: "Write the document that an electronic invoice states, and enqueue it",
		Description: "The body is the file itself, at most 8 MiB, whatever its Content-Type. It is checked as an import does: " +
			"one that cannot be posted is INVALID_DOCUMENT, and errors says with which code. " +
			"The document's id is what the invoice states of its type, number and seller, so the same invoice is the same " +
			"document: sent again, it is unchanged; with other content, it gets a new version.",
		DefaultStatus: http.StatusCreated,
		Responses: map[string]*huma.Response{"200": {
			Description: "The document was there already",
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[answers.ReceivedDocument](), true, ""),
			}},
		}},
		Metadata: map[string]any{bodyKey: int64(maxReceivedBytes)},
	}, s.receiveDocument, http.StatusNotFound)
}

type receiveDocumentInput struct {
	Format    string `query:"format" required:"true" enum:"ubl,cii,facturx" doc:"What the body is: XML of UBL 2.1 or UN/CEFACT CII, or a PDF of Factur-X or ZUGFeRD 2"`
	OrgID     string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Direction string `query:"direction" enum:"out,in" default:"out" doc:"out: the organization issued it; in: it received it"`
	RawBody   []byte
}

type receiveDocumentOutput struct {
	Status int
	Body   answers.ReceivedDocument
}

func (s *server) receiveDocument(ctx context.Context, in *receiveDocumentInput) (*receiveDocumentOutput, error) {
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	if err := s.limits.job(&caller(ctx).Token); err != nil {
		return nil, err
	}
	d, text, err := s.readReceived(ctx, org, in)
	if err != nil {
		return nil, err
	}
	out := &receiveDocumentOutput{Status: http.StatusOK}
	err = store.Begin(ctx, s.pool, func(tx pgx.Tx) error {
		puts, err := ledgerdb.PutDocuments(ctx, tx, []ledgerdb.NewDocument{{Document: d, Text: text}}, true)
		if err != nil {
			return err
		}
		out.Body = answers.ReceivedDocument{
			DocumentID: d.ID, Type: string(d.Type), Result: string(puts[0].Result), Version: puts[0].Version,
		}
		switch puts[0].Result {
		case ledgerdb.PutUnchanged:
			return nil
		case ledgerdb.PutInserted:
			out.Status = http.StatusCreated
		case ledgerdb.PutChanged:
		}
		r, err := queue.EnqueueAccountingJob(ctx, tx, queue.AccountingJob{OrgID: org, DocumentID: d.ID, Version: puts[0].Version})
		out.Body.JobID = r.JobID
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readReceived reads the document that a body states, with the text of its content, and checks that
// it can be posted.
func (s *server) readReceived(ctx context.Context, org string, in *receiveDocumentInput) (*models.Document, string, error) {
	convert := importer.UBL
	switch in.Format {
	case "cii":
		convert = importer.CII
	case "facturx":
		convert = nil
	}
	var read importer.Imported
	var err error
	if body := bytes.NewReader(in.RawBody); convert != nil {
		read, err = convert(body)
	} else {
		read, err = importer.FacturX(body, body.Size())
	}
	if err != nil {
		return nil, "", notReceived(err)
	}
	d := read.For(org, models.Direction(in.Direction))
	if err := importer.Validate(d); err != nil {
		return nil, "", notReceived(err)
	}
	var rules *posting.RuleSet
	switch set, err := ledgerdb.ActiveRuleSet(ctx, s.pool, org); {
	case err == nil:
		// Rules that cannot be compiled post nothing, which the document's job says.
		rules, _ = posting.Compile([]byte(set.Source))
	case !errors.Is(err, ledgerdb.ErrNoRuleSet):
		return nil, "", err
	}
	if err := posting.Check(&d, rules); err != nil {
		return nil, "", notReceived(err)
	}
	text, err := json.Marshal(d.Content)
	return &d, string(text), err
}

// notReceived is the problem of an electronic invoice that is refused.
func notReceived(err error) error {
	if !errors.Is(err, importer.ErrInvalid) && !errors.Is(err, importer.ErrNotBookable) {
		if _, wrong := errors.AsType[*posting.Error](err); !wrong {
			return err
		}
	}
	p := newProblem(failure.InvalidDocument, err.Error())
	part := ProblemPart{Location: "body", Message: err.Error()}
	if wrong, ok := errors.AsType[*posting.Error](err); ok {
		part.Code = string(wrong.Code)
	}
	p.Errors = []ProblemPart{part}
	return p
}

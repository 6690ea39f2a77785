package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

const (
	// maxReceivedBytes is how long an electronic invoice may be.
	maxReceivedBytes = 8 << 20
	// receivedAtOnce is how many a server reads side by side: one takes up to some hundred megabytes
	// while it is read. Further ones wait.
	receivedAtOnce = 2
)

// received adds electronic invoices that come one by one.
func (s *server) received() {
	operation(s, tokens.ScopeEnqueue, huma.Operation{
		OperationID: "receiveDocument", Method: http.MethodPost, Path: "/api/documents", Tags: []string{tagLedger},
		Summary: "Write the document that an electronic invoice states, and enqueue it",
		Description: "The body is the file itself, at most 8 MiB, whatever its Content-Type. It is checked as an import does: " +
			"one that cannot be posted is DOCUMENT_REFUSED, and errors says with which code. " +
			"The document's id is what the invoice states of its type, number and seller, so the same invoice is the same " +
			"document: sent again, it is unchanged; with other content, it gets a new version. " +
			"What is written is on record as an import, which can be undone: one of its own, or importId.",
		DefaultStatus: http.StatusCreated,
		Responses: map[string]*huma.Response{"200": {
			Description: "The document was there already",
			Content: map[string]*huma.MediaType{"application/json": {
				Schema: s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[answers.ReceivedDocument](), true, ""),
			}},
		}},
		Metadata: map[string]any{bodyKey: int64(maxReceivedBytes)},
	}, s.receiveDocument, http.StatusNotFound, http.StatusConflict)
}

type receiveDocumentInput struct {
	Format    string `query:"format" required:"true" enum:"ubl,cii,facturx" doc:"What the body is: XML of UBL 2.1 or UN/CEFACT CII, or a PDF of Factur-X or ZUGFeRD 2"`
	OrgID     string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Direction string `query:"direction" enum:"out,in" default:"out" doc:"out: the organization issued it; in: it received it"`
	ImportID  int64  `query:"importId" minimum:"1" doc:"An import of the same organization, such as that of an earlier answer, which the document is to be part of; default: one of its own"`
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
	out.Body = answers.ReceivedDocument{DocumentID: d.ID, Type: string(d.Type)}
	err = store.Begin(ctx, s.pool, func(tx pgx.Tx) error {
		rules, err := s.trials.Of(ctx, tx, org)
		if err != nil {
			return err
		}
		if err := rules.Check(d); err != nil {
			return notReceived(err)
		}
		put, err := putReceived(ctx, tx, in, ledgerdb.NewDocument{Document: d, Text: text})
		if err != nil {
			return err
		}
		out.Body.Result, out.Body.Version, out.Body.ImportID = string(put.Result), put.Version, *d.ImportID
		if put.Result == ledgerdb.PutInserted {
			out.Status = http.StatusCreated
		}
		r, err := queue.EnqueueAccountingJob(ctx, tx, queue.AccountingJob{OrgID: org, DocumentID: d.ID, Version: put.Version})
		out.Body.JobID = r.JobID
		return err
	})
	if errors.Is(err, errUnchanged) {
		out.Body.Result = string(ledgerdb.PutUnchanged)
		out.Body.ImportID, err = ledgerdb.ImportOf(ctx, s.pool, org, d.ID)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// errUnchanged takes back the import of a document that is there already.
var errUnchanged = failure.New(failure.Internal, "the document is there already")

// putReceived writes a document by an import of its own, or by the one that the caller names, and
// gives it the import's id.
func putReceived(ctx context.Context, tx pgx.Tx, in *receiveDocumentInput, d ledgerdb.NewDocument) (ledgerdb.Put, error) {
	i := models.Import{ID: in.ImportID, OrgID: d.OrgID, Format: in.Format, Actor: caller(ctx).Name}
	var err error
	if i.ID == 0 {
		i.ID, err = ledgerdb.BeginImport(ctx, tx, i)
	} else {
		err = ledgerdb.ContinueImport(ctx, tx, i.OrgID, i.ID)
	}
	if err != nil {
		return ledgerdb.Put{}, err
	}
	d.ImportID = &i.ID
	puts, err := ledgerdb.PutImported(ctx, tx, []ledgerdb.NewDocument{d})
	if err != nil {
		return ledgerdb.Put{}, err
	}
	switch puts[0].Result {
	case ledgerdb.PutUnchanged:
		return puts[0], errUnchanged
	case ledgerdb.PutInserted:
		i.Inserted = 1
	case ledgerdb.PutChanged:
		i.Changed = 1
	}
	return puts[0], ledgerdb.EndImport(ctx, tx, i)
}

// readReceived reads the document that a body states, with the text of its content.
func (s *server) readReceived(ctx context.Context, org string, in *receiveDocumentInput) (*models.Document, string, error) {
	select {
	case s.receiving <- struct{}{}:
		defer func() { <-s.receiving }()
	case <-ctx.Done():
		return nil, "", fmt.Errorf("%w: as many electronic invoices as are read at a time are being read", errTooMany)
	}
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
	p := newProblem(failure.DocumentRefused, err.Error())
	part := ProblemPart{Location: "body", Message: err.Error()}
	if wrong, ok := errors.AsType[*posting.Error](err); ok {
		part.Code = string(wrong.Code)
	}
	p.Errors = []ProblemPart{part}
	return p
}

package adopt

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
)

// DefaultOperationsTable is the table of async operations where none is named.
const DefaultOperationsTable = "public.async_operations"

// OperationsOptions say what to adopt, and how.
type OperationsOptions struct {
	// Table is the legacy table. Default: DefaultOperationsTable.
	Table string
	// Org is the organization of every row or, with OrgFrom, of those whose column is null. Default:
	// "default".
	Org string
	// OrgFrom is the column that says whose a row is. Default: workspace_id without Org; none with
	// it.
	OrgFrom string
	// Completed says that rows which are completed or cancelled are adopted as well, for the record.
	Completed bool
	// DropCredentials takes credentials out of payloads in place of leaving their rows.
	DropCredentials bool
	// Check says what is wrong with a payload of a type; nil: nothing is checked but its size and
	// form.
	Check func(operationType string, raw []byte) error
}

// Operations adopts a table of async operations: its jobs are rows with a type, a payload and the
// statuses pending, failed (waits to be tried again), processing, completed, dead and cancelled.
type Operations struct {
	pool     *pgxpool.Pool
	options  OperationsOptions
	table    Table
	problems Problems
}

// The columns of a table of async operations. Without the first ones nothing can be adopted; the
// others have defaults.
var (
	neededOperation = []string{"id", "operation_type", "payload", "status"}
	knownOperation  = []string{
		"id", "operation_type", "payload", "submission_id", "form_id", "workspace_id", "status", "attempts", "max_attempts",
		"last_attempt_at", "next_retry_at",
		"completed_at", "last_error", "error_history", "result", "created_at", "updated_at",
	}
)

// The statuses of an operation.
const (
	statusPending    = "pending"
	statusFailed     = "failed"
	statusProcessing = "processing"
	statusCompleted  = "completed"
	statusDead       = "dead"
	statusCancelled  = "cancelled"
)

// NewOperations looks at the table that the options name.
func NewOperations(ctx context.Context, pool *pgxpool.Pool, o OperationsOptions) (*Operations, error) {
	o.Table = cmp.Or(o.Table, DefaultOperationsTable)
	a := &Operations{pool: pool, options: o}
	var err error
	if a.table, err = LookAt(ctx, pool, o.Table); err != nil {
		return nil, err
	}
	if o.OrgFrom == "" && o.Org == "" && a.table.Has("workspace_id") {
		a.options.OrgFrom = "workspace_id"
	}
	a.options.Org = cmp.Or(o.Org, "default")
	a.checkTable()
	return a, nil
}

func (a *Operations) checkTable() {
	p, t := &a.problems, a.table
	if strings.HasPrefix(t.Name, "daybook.") {
		p.Block("OWN_TABLE", t.Name+" is Daybook's own: name the legacy table by --table")
	}
	if t.View {
		p.Block("NOT_A_TABLE", t.Name+" is a view: its rows cannot be locked; name the table")
	}
	if lacks, _ := t.Compare(neededOperation); len(lacks) > 0 {
		p.Block("COLUMN_MISSING", fmt.Sprintf("%s lacks %s", t.Name, strings.Join(lacks, ", ")))
	}
	if c := t.Column("payload"); c != nil && c.Type != "jsonb" && c.Type != "json" {
		p.Block("PAYLOAD_TYPE", fmt.Sprintf("the column payload is %s: want jsonb or json", c.Type))
	}
	if c := t.Column("status"); c != nil && c.Labels != nil && !slices.Contains(c.Labels, statusCancelled) {
		p.Block("STATE_MISSING", fmt.Sprintf("the type %s has no cancelled, by which Daybook marks rows: ALTER TYPE … "+
			"ADD VALUE", c.Type))
	}
	p.addGenerated(t, []string{"id"}, []string{"status", "last_error"})
	if !t.MayTrigger {
		p.Block("NO_TRIGGER_RIGHT", "the present role may not put a trigger on "+t.Name+
			", which keeps what Daybook holds from being worked there as well: run as the table's owner")
	}
	p.addOwner(t)
	if a.options.OrgFrom != "" && !t.Has(a.options.OrgFrom) {
		p.Block("COLUMN_MISSING", fmt.Sprintf("%s has no column %s, which --org-from names", t.Name, a.options.OrgFrom))
	}
}

// statuses are those of the rows that are adopted.
func (a *Operations) statuses() []string {
	s := []string{statusPending, statusFailed, statusDead}
	if a.options.Completed {
		s = append(s, statusCompleted, statusCancelled)
	}
	return s
}

// credentials are the members of payloads that may hold credentials.
const credentials = "{airtableSettings,api_key}"

// payload is an expression of the payload as it is adopted.
func (a *Operations) payload() string {
	if !a.options.DropCredentials {
		return "t.payload::jsonb"
	}
	return "CASE jsonb_typeof(t.payload::jsonb) WHEN 'object' THEN t.payload::jsonb #- '" + credentials +
		"' ELSE t.payload::jsonb END"
}

// org is an expression of the organization of a row, in which $1 is the one of rows that name none.
func (a *Operations) org() string {
	if a.options.OrgFrom == "" {
		return "$1::text"
	}
	return "coalesce(nullif(" + a.table.Text("t", a.options.OrgFrom, "") + ", ''), $1::text)"
}

// operationHash is an expression: the hash of an operation's id, type and payload.
func operationHash(id, operationType, payload string) string {
	return "hashtextextended(" + id + "::text || E'\\n' || " + operationType + "::text || E'\\n' || coalesce((" +
		payload + ")::text, ''), 0)"
}

// operation is a row of the legacy table.
type operation struct {
	ID, Type, Status, Org string
	Payload               []byte
	// Secret says that the payload holds credentials.
	Secret bool
	Hash   int64
}

// typeName is how a type of jobs is written.
var typeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]{0,63}$`)

// Why a row is left.
const (
	codeProcessing = "PROCESSING"
	codeCredential = "CREDENTIALS"
	codePayload    = "PAYLOAD_REFUSED"
)

// refuse says why a row is not adopted; empty: it is. A row that Daybook would work has a payload
// that its type's handler accepts.
func (a *Operations) refuse(o *operation) (code, detail string) {
	open := o.Status == statusPending || o.Status == statusFailed
	check := func() error {
		if a.options.Check == nil {
			return nil
		}
		return a.options.Check(o.Type, o.Payload)
	}
	switch {
	case o.Status == statusProcessing:
		return codeProcessing, "the legacy worker holds the row: the next repetition adopts what comes of it. One that " +
			"is stuck is reset by the legacy system's own clean-up"
	case !slices.Contains([]string{statusPending, statusFailed, statusDead, statusCompleted, statusCancelled}, o.Status):
		return "STATUS_UNKNOWN", "the status is none of pending, processing, completed, failed, dead and cancelled: " +
			"correct the row"
	case len(o.Org) > 255:
		return "ORG_INVALID", "the organization has more than 255 bytes: name another column by --org-from"
	case !typeName.MatchString(o.Type):
		return "TYPE_INVALID", "a type is a letter and then letters, digits, _ . : or -, 64 bytes at most: correct the row"
	case o.Secret:
		if err := check(); err != nil {
			return codeCredential, err.Error() + "; --drop-credentials adopts such rows without them"
		}
		return codeCredential, "a payload holds no credentials: store them as a secret, and repeat with --drop-credentials"
	}
	if err := payload.Check(o.Payload); err != nil {
		return codePayload, err.Error()
	}
	if open {
		if err := check(); err != nil {
			return codePayload, o.Type + ": " + err.Error() + ". Left to the legacy worker: Daybook's would refuse it"
		}
	}
	return "", ""
}

// Look implements Adopter.
func (a *Operations) Look(ctx context.Context) (Plan, error) {
	lacks, more := a.table.Compare(knownOperation)
	p := Plan{Table: a.table.Name, Missing: lacks, Ignored: more, Problems: append(Problems{}, a.problems...)}
	if len(a.problems.Blocking()) > 0 {
		return p, nil
	}
	stmt := `
SELECT t.id::text, t.operation_type::text, t.status::text, ` + a.org() +
		`, CASE WHEN t.status::text = ANY ($3) THEN (` + a.payload() + `)::text END,
       (` + a.payload() + `) #>> '` + credentials + `' IS NOT NULL, ` +
		operationHash("t.id", "t.operation_type", a.payload()) + `, coalesce(h.taken_state, '')
  FROM ` + a.table.Name + ` t
  LEFT JOIN daybook.adopted_rows h ON h.legacy_table = $2 AND h.legacy_id = t.id::text
 ORDER BY t.id`
	err := store.ReadSnapshot(ctx, a.pool, func(tx pgx.Tx) error {
		var o operation
		var held string
		var raw *string
		return store.Each(ctx, tx, []any{&o.ID, &o.Type, &o.Status, &o.Org, &raw, &o.Secret, &o.Hash, &held}, func() error {
			if held != "" {
				p.Held.Add(o.Org, held, o.Hash)
				return nil
			}
			p.Found.Add(o.Org, o.Status, o.Hash)
			if o.Payload = nil; raw != nil {
				o.Payload = []byte(*raw)
			}
			if o.Status != statusProcessing && (o.Status == statusCompleted || o.Status == statusCancelled) &&
				!a.options.Completed {
				p.Leave.Add(o.Org, o.Status, o.Hash)
				return nil
			}
			if code, detail := a.refuse(&o); code != "" {
				p.Leave.Add(o.Org, o.Status, o.Hash)
				p.Problems.Add(code, detail, o.Org+"/"+o.ID)
				return nil
			}
			p.Take.Add(o.Org, o.Status, o.Hash)
			return nil
		}, stmt, a.options.Org, a.table.Name, a.statuses())
	})
	p.Notes = []string{
		"rows that are adopted are cancelled in " + a.table.Name + `, with last_error "held by Daybook"`,
		"a trigger on " + a.table.Name + " hands a retry of such a row on to Daybook",
	}
	if !a.options.Completed {
		p.Notes = append(p.Notes, "completed and cancelled rows stay where they are: --completed adopts them as a record")
	}
	return p, store.Wrap("look at "+a.table.Name, err)
}

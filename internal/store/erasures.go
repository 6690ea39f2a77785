package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// EraseScope says what is erased: what is linked to Kind and ID in an organization, or with an
// empty Kind all of the organization.
type EraseScope struct {
	OrgID    string
	Kind, ID string
}

// args adds the scope to the arguments of a statement.
func (s EraseScope) args(a Args) Args {
	a["org"], a["kind"], a["link"] = s.OrgID, s.Kind, s.ID
	return a
}

// Document is the id of the document that the scope is about; empty: all of the organization, or
// none.
func (s EraseScope) Document() string {
	if s.Kind == "document" {
		return s.ID
	}
	return ""
}

// Kept is what an erasure did not erase, and why.
type Kept struct {
	What   string `json:"what"`
	Count  int64  `json:"count"`
	Reason string `json:"reason"`
}

// Erasure is the proof of an erasure.
type Erasure struct {
	ID         string     `json:"id"`
	StartedAt  time.Time  `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	// Actor is who asked for it, DBRole the role of the database.
	Actor  string `json:"actor"`
	DBRole string `json:"dbRole"`
	OrgID  string `json:"orgId"`
	// Scope is organization or link, LinkKind the kind of the link.
	Scope    string  `json:"scope"`
	LinkKind *string `json:"linkKind,omitempty"`
	// ScopeSalt and ScopeHash, in hexadecimal, let who knows the link tell that this erasure was
	// about it.
	ScopeSalt string `json:"scopeSalt"`
	ScopeHash string `json:"scopeHash"`
	// Ground is what the operator gave as the reason.
	Ground string           `json:"ground,omitempty"`
	Counts map[string]int64 `json:"counts"`
	Kept   []Kept           `json:"kept"`
	// OpenJobs counts the jobs that were being worked at its end.
	OpenJobs int64 `json:"openJobs"`
}

// BeginErasure puts an erasure on record, and returns its id.
func BeginErasure(ctx context.Context, tx pgx.Tx, s EraseScope, actor, ground string, salt,
	hash []byte,
) (string, error) {
	const stmt = `
INSERT INTO daybook.erasures (actor, org_id, scope, link_kind, scope_salt, scope_hash, ground)
VALUES (@actor, @org, CASE @kind WHEN '' THEN 'organization' ELSE 'link' END, nullif(@kind, ''), @salt, @hash, @ground)
RETURNING id`
	return value[string](ctx, tx, "put the erasure on record", stmt,
		s.args(Args{"actor": actor, "ground": ground, "salt": salt, "hash": hash}))
}

// CountErased adds to the counts of an erasure, in the transaction that erases.
func CountErased(ctx context.Context, tx pgx.Tx, id string, counts map[string]int64) error {
	const stmt = `
UPDATE daybook.erasures e
   SET counts = (SELECT coalesce(jsonb_object_agg(x.key, x.total), '{}')
                   FROM (SELECT key, sum(value::bigint) AS total
                           FROM (SELECT * FROM jsonb_each_text(e.counts) UNION ALL SELECT * FROM jsonb_each_text($2)) AS both_of (key, value)
                          GROUP BY key HAVING sum(value::bigint) > 0) x)
 WHERE e.id = $1`
	_, err := tx.Exec(ctx, stmt, id, counts)
	return Wrap("count what was erased", err)
}

// EndErasure completes the proof, which stays as it is from then on.
func EndErasure(ctx context.Context, tx pgx.Tx, id string, kept []Kept, open int64) error {
	if kept == nil {
		kept = []Kept{}
	}
	_, err := tx.Exec(ctx, `UPDATE daybook.erasures SET finished_at = clock_timestamp(), kept = $2, open_jobs = $3 WHERE id = $1`, id, kept, open)
	return Wrap("complete the erasure's proof", err)
}

// Erasures reads erasures, the newest first: that of an id, or those of an organization, or all.
func Erasures(ctx context.Context, q Querier, id, org string) ([]Erasure, error) {
	const stmt = `
SELECT id, started_at, finished_at, actor, db_role, org_id, scope, link_kind, encode(scope_salt, 'hex'), encode(scope_hash, 'hex'), ground, counts, kept, open_jobs::bigint
  FROM daybook.erasures
 WHERE ($1 = '' OR id = $1) AND ($2 = '' OR org_id = $2)
 ORDER BY started_at DESC, id DESC`
	list, err := Collect(ctx, q, pgx.RowToStructByPos[Erasure], stmt, id, org)
	return list, Wrap("read the erasures", err)
}

// The jobs of a scope are read in the order of their ids, a batch at a time: those of a link by the
// index of links, those of an organization along the primary key. So an erasure reads each of them
// once, however many batches it takes. (As text, the states are not those of the index of finished
// jobs, which would be read whole.)

// cancelErased asks that open jobs of the scope not be worked: those that no worker works are
// cancelled at once, the others when their attempt has ended. Those whose rows another transaction
// holds are passed over.
const cancelErased = `
WITH looked AS MATERIALIZED (
    (SELECT l.job_id AS id FROM daybook.job_links l WHERE @kind <> '' AND l.kind = @kind AND l.id = @link AND l.job_id > @behind ORDER BY l.job_id LIMIT @batch)
     UNION ALL
    (SELECT j.id FROM daybook.jobs j
      WHERE @kind = '' AND j.org_id = @org AND j.state IN ('pending', 'leased', 'failed') AND NOT j.cancel_requested AND j.id > @behind
      ORDER BY j.id LIMIT @batch)
), open AS MATERIALIZED (
    SELECT j.id FROM looked JOIN daybook.jobs j USING (id) WHERE j.org_id = @org AND j.state IN ('pending', 'leased', 'failed') AND NOT j.cancel_requested
)
SELECT coalesce((SELECT max(id) FROM looked), ''), daybook.cancel_jobs(coalesce((SELECT array_agg(id) FROM open), '{}'), '{pending,leased,failed}')`

// CancelErased cancels the open jobs among the next ones of a scope behind an id, and returns the
// last id; empty: there are none.
func CancelErased(ctx context.Context, tx pgx.Tx, s EraseScope, behind string, batch int) (string, error) {
	last, err := inOrder(ctx, tx,
		func(row pgx.CollectableRow) (last string, err error) { return last, row.Scan(&last, nil) }, cancelErased,
		s.args(Args{"behind": behind, "batch": batch}))
	if err != nil {
		return "", Wrap("cancel the open jobs", err)
	}
	return last[0], nil
}

// OpenErased counts the jobs of a scope that are left.
func OpenErased(ctx context.Context, q Querier, s EraseScope) (n int64, err error) {
	const stmt = `
SELECT (SELECT count(*) FROM daybook.jobs j WHERE @kind = '' AND j.org_id = @org)
     + (SELECT count(*) FROM daybook.job_links l JOIN daybook.jobs j ON j.id = l.job_id WHERE @kind <> '' AND l.kind = @kind AND l.id = @link AND j.org_id = @org)`
	return value[int64](ctx, q, "count the open jobs", stmt, s.args(Args{}))
}

// noLine says that no open job has the key of a rate r: jobs in its line go on by that row alone.
// unchanged says that no worker has changed a rate r, for a new job, since the statement read it as w.
const (
	noLine    = `NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.limit_scope = r.scope AND o.org_id = r.org_id AND o.limit_key = r.limit_key AND o.finished_at IS NULL)`
	unchanged = `(r.scope, r.org_id, r.limit_key, r.next_at, r.look_at) = (w.scope, w.org_id, w.limit_key, w.next_at, w.look_at)`
)

// eraseJobs removes jobs of the scope that have ended, with what other tables have of them. What an
// action was about is replaced by the erasure's mark.
const eraseJobs = `
WITH looked AS MATERIALIZED (
    (SELECT l.job_id AS id FROM daybook.job_links l WHERE @kind <> '' AND l.kind = @kind AND l.id = @link AND l.job_id > @behind ORDER BY l.job_id LIMIT @batch)
     UNION ALL
    (SELECT j.id FROM daybook.jobs j WHERE @kind = '' AND j.org_id = @org AND j.state::text IN ('completed', 'cancelled') AND j.id > @behind ORDER BY j.id LIMIT @batch)
), doomed AS MATERIALIZED (
    SELECT j.id, j.limit_scope, j.limit_key
      FROM looked JOIN daybook.jobs j USING (id)
     WHERE j.org_id = @org AND j.state IN ('completed', 'cancelled')
       FOR UPDATE OF j SKIP LOCKED
), attempts AS (
    DELETE FROM daybook.attempt_log a USING doomed d WHERE a.job_id = d.id RETURNING 1
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w USING doomed d WHERE w.job_id = d.id RETURNING 1
), deliveries AS (
    DELETE FROM daybook.job_deliveries c USING doomed d WHERE c.job_id = d.id RETURNING 1
), steps AS (
    DELETE FROM daybook.job_steps s USING doomed d WHERE s.job_id = d.id RETURNING 1
), unused AS MATERIALIZED (
    SELECT r.*
      FROM (SELECT DISTINCT d.limit_scope, d.limit_key FROM doomed d) d
      JOIN daybook.job_limit_rates r ON r.scope = d.limit_scope AND r.org_id = @org AND r.limit_key = d.limit_key
     WHERE ` + noLine + `
), rates AS (
    DELETE FROM daybook.job_limit_rates r USING unused w WHERE ` + unchanged + `
), links AS (
    DELETE FROM daybook.job_links l USING doomed d WHERE l.job_id = d.id RETURNING 1
), adopted AS (
    UPDATE daybook.adopted_rows r SET legacy_row = jsonb_build_object('erased', @erasure::text) FROM doomed d WHERE r.job_id = d.id RETURNING 1
), actions AS (
    UPDATE daybook.actions a SET subject = '', details = jsonb_build_object('erased', @erasure::text)
      FROM doomed d
     WHERE a.subject = d.id AND (a.org_id = @org OR a.org_id IS NULL) AND a.details -> 'erased' IS NULL
    RETURNING 1
), jobs AS (
    DELETE FROM daybook.jobs j USING doomed d WHERE j.id = d.id RETURNING 1
)
SELECT coalesce((SELECT max(id) FROM looked), ''),
       jsonb_build_object('jobs', (SELECT count(*) FROM jobs), 'attempts', (SELECT count(*) FROM attempts), 'job_links', (SELECT count(*) FROM links),
           'webhook_deliveries', (SELECT count(*) FROM receipts), 'job_deliveries', (SELECT count(*) FROM deliveries), 'job_steps', (SELECT count(*) FROM steps), 'adopted_rows', (SELECT count(*) FROM adopted), 'actions', (SELECT count(*) FROM actions))`

// eraseRest erases what an organization has beside its jobs: receipts and attempts whose jobs are
// gone, what is left of its keys' rates, requests for many jobs (a patch, who edits), its tokens, its
// name, what legacy rows were, and where its documents were imported from.
const eraseRest = `
WITH unused AS MATERIALIZED (
    SELECT r.* FROM daybook.job_limit_rates r WHERE r.org_id = @org AND ` + noLine + `
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w WHERE w.org_id = @org AND NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = w.job_id) RETURNING 1
), attempts AS (
    DELETE FROM daybook.attempt_log a WHERE a.org_id = @org AND a.kind = 'jobs' AND NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = a.job_id) RETURNING 1
), adopted AS (
    UPDATE daybook.adopted_rows r SET legacy_row = jsonb_build_object('erased', @erasure::text) WHERE r.org_id = @org AND r.legacy_row -> 'erased' IS NULL RETURNING 1
), sessions AS (
    DELETE FROM daybook.console_sessions s USING daybook.api_tokens t WHERE t.id = s.token_id AND t.org_id = @org RETURNING 1
), tokens AS (
    UPDATE daybook.api_tokens t SET name = '[erased]', revoked_at = coalesce(t.revoked_at, clock_timestamp()) WHERE t.org_id = @org AND t.name <> '[erased]' RETURNING 1
), rates AS (
    DELETE FROM daybook.job_limit_rates r USING unused w WHERE ` + unchanged + `
), operations AS (
    DELETE FROM daybook.bulk_operations b WHERE b.org_id = @org RETURNING 1
), imports AS (
    UPDATE daybook.imports i SET files = '[erased]' WHERE i.org_id = @org AND i.files NOT IN ('', '[erased]') RETURNING 1
), organizations AS (
    UPDATE daybook.organizations o SET name = '', updated_at = clock_timestamp() WHERE o.id = @org AND o.name <> '' RETURNING 1
)
SELECT '', jsonb_build_object('webhook_deliveries', (SELECT count(*) FROM receipts), 'attempts', (SELECT count(*) FROM attempts), 'adopted_rows', (SELECT count(*) FROM adopted),
           'console_sessions', (SELECT count(*) FROM sessions), 'api_tokens', (SELECT count(*) FROM tokens), 'bulk_operations', (SELECT count(*) FROM operations),
           'imports', (SELECT count(*) FROM imports), 'organizations', (SELECT count(*) FROM organizations))`

// eraseActions replaces what actions of the organization, or that name the link (actions.Link), were
// about by the erasure's mark.
const eraseActions = `
WITH looked AS MATERIALIZED (
    SELECT x.id
      FROM daybook.actions x
     WHERE x.id > coalesce(nullif(@behind, '')::bigint, 0) AND x.details -> 'erased' IS NULL AND (x.subject <> '' OR x.details <> '{}')
       AND CASE WHEN @kind = '' THEN x.org_id = @org
                ELSE (x.org_id = @org OR x.org_id IS NULL)
                     AND (x.details ->> 'link' IN (@kind || '=' || @link, '=' || @link)
                          OR @kind = 'document' AND x.subject IN (@org || ' ' || @link, @link) AND x.org_id = @org) END
     ORDER BY x.id
     LIMIT @batch
), marked AS (
    UPDATE daybook.actions a SET subject = '', details = jsonb_build_object('erased', @erasure::text) FROM looked l WHERE a.id = l.id RETURNING 1
)
SELECT coalesce((SELECT max(id) FROM looked)::text, ''), jsonb_build_object('actions', (SELECT count(*) FROM marked))`

// eraseAccounting erases the texts of errors of accounting jobs and of their attempts. Codes stay.
const eraseAccounting = `
WITH looked AS MATERIALIZED (
    SELECT q.id, q.document_id
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = @org AND (@document = '' OR q.document_id = @document) AND q.document_id > @behind
     ORDER BY q.document_id
     LIMIT @batch
), queue AS (
    UPDATE daybook.accounting_work_queue q SET last_error = '[erased]'
     WHERE q.id IN (SELECT x.id FROM looked JOIN daybook.accounting_work_queue x USING (id)
                     WHERE x.last_error <> '[erased]' AND x.state <> 'leased' FOR UPDATE OF x SKIP LOCKED)
    RETURNING 1
), attempts AS (
    UPDATE daybook.attempt_log a SET error = '[erased]' FROM looked l WHERE a.job_id = l.id AND a.kind = 'accounting' AND a.error <> '[erased]' RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''),
       jsonb_build_object('accounting_work_queue', (SELECT count(*) FROM queue), 'accounting_attempts', (SELECT count(*) FROM attempts))`

// eraseFormers erases what documents were before imports changed them: those imports cannot restore
// them any more.
const eraseFormers = `
WITH looked AS MATERIALIZED (
    SELECT m.import_id, m.document_id
      FROM daybook.import_documents m
      JOIN daybook.imports i ON i.id = m.import_id
     WHERE m.former IS NOT NULL AND i.org_id = @org AND (@document = '' OR m.document_id = @document) AND m.document_id >= @behind
     ORDER BY m.document_id
     LIMIT @batch
), formers AS (
    UPDATE daybook.import_documents m SET former = NULL FROM looked l WHERE m.import_id = l.import_id AND m.document_id = l.document_id RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''), jsonb_build_object('import_documents', (SELECT count(*) FROM formers))`

// eraseReasons erases why documents are in a group, and who put them there. Of a document, it is
// erased with the whole group, because each of its documents has what was said of all. The groups
// stay.
const eraseReasons = `
WITH looked AS MATERIALIZED (
    SELECT r.document_id
      FROM daybook.reconciled r
     WHERE r.org_id = @org AND r.document_id > @behind
       AND (@document = '' OR r.group_id IN (SELECT g.group_id FROM daybook.reconciled g
                                              WHERE g.org_id = @org AND g.document_id IN (@document, daybook.open_item_of(@org, @document))))
       AND (r.reason NOT IN ('', '[erased]') OR r.actor <> '[erased]')
     ORDER BY r.document_id
     LIMIT @batch
), reasons AS (
    UPDATE daybook.reconciled r SET reason = CASE r.reason WHEN '' THEN '' ELSE '[erased]' END, actor = '[erased]'
      FROM looked l WHERE r.org_id = @org AND r.document_id = l.document_id RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''), jsonb_build_object('reconciled', (SELECT count(*) FROM reasons))`

// EraseStep is the statement that erases the next rows of one kind. It returns the last that it has
// looked at, or nothing when it has looked at all, and the rows by table.
type EraseStep string

// EraseSteps are the kinds of rows that an erasure of this scope erases batch by batch, after its
// jobs have ended.
func EraseSteps(s EraseScope) []EraseStep {
	steps := []EraseStep{eraseJobs, eraseActions}
	if s.Kind == "" {
		steps = append(steps, eraseRest)
	}
	if s.Kind == "" || s.Document() != "" {
		steps = append(steps, eraseAccounting, eraseFormers, eraseReasons)
	}
	return steps
}

// Erase erases the next batch behind what an earlier one has looked at last, and returns the rows
// by table, and what it has looked at last; empty: that was all.
func (e EraseStep) Erase(ctx context.Context, tx pgx.Tx, erasure string, s EraseScope, behind string,
	batch int,
) (counts map[string]int64, last string, err error) {
	_, err = inOrder(ctx, tx,
		func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(&last, &counts) }, string(e),
		s.args(Args{"erasure": erasure, "behind": behind, "batch": batch, "document": s.Document()}))
	return counts, last, Wrap("erase", err)
}

// KeptByLedger counts the impacts and entries of the scope, which stay.
func KeptByLedger(ctx context.Context, q Querier, s EraseScope) (impacts, entries int64, err error) {
	const stmt = `SELECT count(*), coalesce(sum(entry_count), 0)::bigint FROM daybook.impacts WHERE org_id = @org AND (@document = '' OR document_id = @document)`
	err = queryRow(ctx, q, stmt, Args{"org": s.OrgID, "document": s.Document()}).Scan(&impacts, &entries)
	return impacts, entries, Wrap("count what the ledger keeps", err)
}

// ReplaceArchived puts a file on record in place of another one, which is to be deleted. Without a
// new one its rows are all erased. It returns false when another transaction has replaced the file.
func ReplaceArchived(ctx context.Context, tx pgx.Tx, key string, by *Archived) (bool, error) {
	tag, err := tx.Exec(ctx, `UPDATE daybook.archives SET erased_at = clock_timestamp(), org_ids = '{}' WHERE key = $1 AND erased_at IS NULL`, key)
	if err != nil || tag.RowsAffected() == 0 {
		return false, Wrap("replace a file of the archive", err)
	}
	if by == nil {
		return true, nil
	}
	return true, RecordArchived(ctx, tx, *by)
}

// ForgetArchived takes a file that was replaced, and is deleted, off the record.
func ForgetArchived(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `DELETE FROM daybook.archives WHERE key = $1 AND erased_at IS NOT NULL`, key)
	return Wrap("forget a file of the archive", err)
}

// ScopeText is the scope in words.
func (e *Erasure) ScopeText() string {
	if e.LinkKind != nil {
		return "a link of the kind " + *e.LinkKind
	}
	return "all of the organization"
}

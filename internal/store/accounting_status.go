package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// AccountingJobStatus is how a document's job and posting stand.
type AccountingJobStatus struct {
	JobID       string
	State       models.JobState
	VersionHint int64
	RunCount    int
	ReadyAt     time.Time
	ErrorCode   models.ErrorCode
	Error       string
	FinishedAt  *time.Time
	// LiveImpactID is nil when the document is not posted; then PostedVersion is nil as well. A
	// version that the impact was confirmed for counts as posted.
	LiveImpactID  *int64
	PostedVersion *int64
	// Wrote says that the statement ran in a transaction that has written something.
	Wrote bool
}

// ReadAccountingJobStatus reads how a document stands, in one statement; ErrJobNotFound when it has
// no job.
func ReadAccountingJobStatus(ctx context.Context, q Querier, org, document string) (AccountingJobStatus, error) {
	const stmt = `
SELECT j.id, j.state::text, j.version_hint, j.run_count, j.ready_at, coalesce(j.last_error_code, ''), coalesce(j.last_error, ''), j.finished_at,
       live.id,
       greatest(live.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = live.id)),
       pg_current_xact_id_if_assigned() IS NOT NULL
  FROM daybook.accounting_work_queue j
  LEFT JOIN LATERAL (
        SELECT i.id, i.kind, i.document_version
          FROM daybook.impacts i
         WHERE i.org_id = j.org_id AND i.document_id = j.document_id
         ORDER BY i.seq DESC LIMIT 1) live ON live.kind = 'post'
 WHERE j.org_id = $1 AND j.document_id = $2`
	var s AccountingJobStatus
	err := q.QueryRow(ctx, stmt, org, document).Scan(&s.JobID, &s.State, &s.VersionHint, &s.RunCount, &s.ReadyAt,
		&s.ErrorCode, &s.Error,
		&s.FinishedAt, &s.LiveImpactID, &s.PostedVersion, &s.Wrote)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, NoAccountingJob(org, document)
	}
	return s, Wrap("read the document's status", err)
}

// NoAccountingJob is ErrJobNotFound for a document, in the words of the database's functions.
func NoAccountingJob(org, document string) error {
	return Refuse(ErrJobNotFound, fmt.Sprintf("no accounting job for document %s of organization %s", document, org),
		"enqueue the document first")
}

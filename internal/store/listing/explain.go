package listing

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Explanation is everything that Daybook knows of how a document was posted. All of it is of one
// moment.
type Explanation struct {
	OrgID      string
	DocumentID string
	// Source is where the organization's documents are read, as the database has it on record:
	// daybook for daybook.documents.
	Source string
	// Document is nil when the application keeps its documents in tables of its own, or the document
	// is gone.
	Document *models.Document
	// Job is nil when the document was never enqueued, or its job was purged.
	Job *models.AccountingJob
	// Elsewhere is what another system has posted of it; nil: nothing.
	Elsewhere *models.PostedElsewhere
	// Attempts are the newest DefaultLimit, the newest first; MoreAttempts says that there are older
	// ones.
	Attempts     []models.Attempt
	MoreAttempts bool
	// LiveImpactID is the impact that posts the document now; nil: it is not posted.
	LiveImpactID *int64
	// PostedVersion is the newest version for which the live impact stands, by a confirmation or its
	// own; nil: the document is not posted.
	PostedVersion *int64
	// Impacts is the chain, the first one first; MoreImpacts says that there are older ones.
	Impacts     []ExplainedImpact
	MoreImpacts bool
}

// NoEntries is why the document is posted without an entry; empty: it has some, or is not posted,
// or the reason is not on record.
func (e *Explanation) NoEntries() models.NoEntries {
	if e.LiveImpactID == nil {
		return ""
	}
	return e.Impacts[len(e.Impacts)-1].NoEntries
}

// ExplainLimits bound what is read of a document that was posted often, or has many lines. The zero
// value of each field means all.
type ExplainLimits struct {
	// Impacts is how many of the chain are read, the last ones.
	Impacts int
	// Entries is how many of each impact are read, the first ones; EntryCount says how many there
	// are. No more confirmations are read.
	Entries int
}

// ExplainedImpact is an impact with what it consists of.
type ExplainedImpact struct {
	models.Impact
	// RuleSetName and RuleSetSHA256 are those of the rule set version that made the entries.
	RuleSetName   string
	RuleSetSHA256 string         `gorm:"column:rule_set_sha256"`
	Entries       []models.Entry `gorm:"-"`
	// Confirmations are the later versions and rule sets under which the impact stood unchanged.
	Confirmations []models.Confirmation `gorm:"-"`
}

// Explain reads how a document was posted, or returns ErrDocumentNotFound when nothing is known of
// it.
func (l *Listing) Explain(ctx context.Context, org, document string) (Explanation, error) {
	return l.ExplainPart(ctx, org, document, ExplainLimits{})
}

// ExplainPart is Explain within limits.
func (l *Listing) ExplainPart(ctx context.Context, org, document string, limits ExplainLimits) (Explanation, error) {
	e := Explanation{OrgID: org, DocumentID: document, Attempts: []models.Attempt{}, Impacts: []ExplainedImpact{}}
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err := l.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := e.readDocument(tx); err != nil {
			return err
		}
		if err := e.readSource(tx); err != nil {
			return err
		}
		if err := e.readImpacts(tx, limits); err != nil || e.LiveImpactID == nil {
			return err
		}
		return e.readPostedVersion(tx)
	}, snapshot)
	if err == nil && e.Document == nil && e.Job == nil && e.Elsewhere == nil && len(e.Impacts) == 0 {
		return e, store.Refuse(store.ErrDocumentNotFound, fmt.Sprintf("organization %s has no document %s", org, document),
			"check the id, and its namespace if it has one, such as invoice:42")
	}
	return e, store.Wrap("explain the document", err)
}

// readDocument reads the document, its job and the attempts.
func (e *Explanation) readDocument(tx *gorm.DB) error {
	var err error
	if e.Document, err = atMostOne[models.Document](tx.Where("org_id = ? AND id = ?", e.OrgID,
		e.DocumentID)); err != nil {
		return err
	}
	if e.Elsewhere, err = atMostOne[models.PostedElsewhere](tx.Where("org_id = ? AND document_id = ?", e.OrgID,
		e.DocumentID)); err != nil {
		return err
	}
	if e.Job, err = atMostOne[models.AccountingJob](tx.Where("org_id = ? AND document_id = ?", e.OrgID,
		e.DocumentID)); err != nil || e.Job == nil {
		return err
	}
	err = history(tx, e.Job.ID, HistoryPage{Limit: store.DefaultLimit + 1}).Find(&e.Attempts).Error
	if e.MoreAttempts = len(e.Attempts) > store.DefaultLimit; e.MoreAttempts {
		e.Attempts = e.Attempts[:store.DefaultLimit]
	}
	return err
}

// readSource reads where the organization's documents are.
func (e *Explanation) readSource(tx *gorm.DB) error {
	const stmt = `SELECT coalesce((SELECT o.source FROM daybook.organizations o WHERE o.id = ?), d.source) FROM daybook.defaults d`
	return tx.Raw(stmt, e.OrgID).Scan(&e.Source).Error
}

// readImpacts reads the chain of impacts with its entries and confirmations.
func (e *Explanation) readImpacts(tx *gorm.DB, limits ExplainLimits) error {
	const chain = `
SELECT i.*, coalesce(s.name, '') AS rule_set_name, coalesce(s.sha256, '') AS rule_set_sha256
  FROM daybook.impacts i
  LEFT JOIN daybook.rule_sets s ON s.org_id = i.org_id AND s.version = i.rule_set_version
 WHERE i.org_id = ? AND i.document_id = ?
 ORDER BY i.seq DESC
 LIMIT ?`
	most := cmp.Or(limits.Impacts, math.MaxInt32-1)
	if err := tx.Raw(chain, e.OrgID, e.DocumentID, most+1).Scan(&e.Impacts).Error; err != nil || len(e.Impacts) == 0 {
		return err
	}
	if e.MoreImpacts = len(e.Impacts) > most; e.MoreImpacts {
		e.Impacts = e.Impacts[:most]
	}
	slices.Reverse(e.Impacts)
	ids := make([]int64, len(e.Impacts))
	at := make(map[int64]*ExplainedImpact, len(e.Impacts))
	for i := range e.Impacts {
		m := &e.Impacts[i]
		m.Entries, m.Confirmations = []models.Entry{}, []models.Confirmation{}
		ids[i], at[m.ID] = m.ID, m
	}
	if last := e.Impacts[len(e.Impacts)-1]; last.Kind == models.ImpactPost {
		e.LiveImpactID = &last.ID
	}
	var entries []models.Entry
	// The lines of an impact are numbered from 1.
	lines := cmp.Or(limits.Entries, math.MaxInt32)
	if err := tx.Where("impact_id IN ? AND line_no <= ?", ids,
		lines).Order("impact_id, line_no").Find(&entries).Error; err != nil {
		return err
	}
	for i := range entries {
		at[entries[i].ImpactID].Entries = append(at[entries[i].ImpactID].Entries, entries[i])
	}
	var confirmations []models.Confirmation
	if err := tx.Where("impact_id IN ?",
		ids).Order("impact_id, created_at, document_version, rule_set_version").Limit(lines).Find(&confirmations).Error; err != nil {
		return err
	}
	for _, c := range confirmations {
		at[c.ImpactID].Confirmations = append(at[c.ImpactID].Confirmations, c)
	}
	return nil
}

// readPostedVersion reads the newest version for which the live impact stands.
func (e *Explanation) readPostedVersion(tx *gorm.DB) error {
	const stmt = `
SELECT greatest(i.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = i.id))
  FROM daybook.impacts i
 WHERE i.id = ?`
	return tx.Raw(stmt, *e.LiveImpactID).Scan(&e.PostedVersion).Error
}

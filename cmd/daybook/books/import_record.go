package books

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

const (
	// maxImportFiles is how long the record of what was imported may be, in bytes.
	maxImportFiles = 1000
	// endRecordsWithin is how long it may take to put the end of an import on record that was
	// interrupted.
	endRecordsWithin = 10 * time.Second
	// importsShown is how many imports of one run are printed.
	importsShown = 10
)

// ImportMade is an import that is on record, of one organization.
type ImportMade struct {
	ID        int64  `json:"id"`
	OrgID     string `json:"org_id"`
	Inserted  int64  `json:"inserted"`
	Changed   int64  `json:"changed"`
	Unchanged int64  `json:"unchanged"`
	// NoRules: the organization has none, and its documents fail until it has.
	NoRules bool `json:"no_rules,omitempty"`
}

// record gives a document the import of its organization, which is put on record with the first
// one.
func (i *Importer) record(ctx context.Context, item *ImportItem) error {
	if i.Result.Trial != nil {
		return nil
	}
	org := item.Document.OrgID
	i.recording.Lock()
	defer i.recording.Unlock()
	i.mu.Lock()
	on := i.records[org]
	i.mu.Unlock()
	if on == nil {
		on = &models.Import{OrgID: org, Format: i.Format, Files: shortened(i.Files), Actor: cli.SystemUser()}
		var err error
		if on.ID, err = ledgerdb.BeginImport(ctx, i.pool, *on); err != nil {
			return err
		}
		i.mu.Lock()
		i.records[org] = on
		i.mu.Unlock()
	}
	item.Document.ImportID = &on.ID
	return nil
}

// shortened joins names, as many as there is room for on record.
func shortened(names []string) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(strings.Join(names, " "), "\x00", ""), "\ufffd")
	if len(text) <= maxImportFiles {
		return text
	}
	const more = " …"
	return strings.ToValidUTF8(text[:maxImportFiles-len(more)], "") + more
}

func countPut(on *models.Import, put ledgerdb.PutResult) {
	switch put {
	case ledgerdb.PutInserted:
		on.Inserted++
	case ledgerdb.PutChanged:
		on.Changed++
	default:
		on.Unchanged++
	}
}

// endRecords puts on record that the imports have ended, also those that were interrupted.
func (i *Importer) endRecords(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endRecordsWithin)
	defer cancel()
	var failed error
	for _, org := range slices.Sorted(maps.Keys(i.records)) {
		on := i.records[org]
		failed = errors.Join(failed, ledgerdb.EndImport(ctx, i.pool, *on))
		rules, known := i.admit.rules[org]
		i.Result.Imports = append(i.Result.Imports, ImportMade{
			ID: on.ID, OrgID: org, Inserted: on.Inserted, Changed: on.Changed, Unchanged: on.Unchanged,
			NoRules: known && rules == nil,
		})
	}
	return failed
}

// printImportsMade prints the imports that wrote something, and says what to do next.
func printImportsMade(a *cli.App, w io.Writer, made []ImportMade) error {
	made = slices.DeleteFunc(slices.Clone(made), func(m ImportMade) bool { return m.Inserted+m.Changed == 0 })
	for n, m := range made {
		if n == importsShown {
			_, err := fmt.Fprintf(w, "and %s more: `daybook import list`\n", phrase.Plural(int64(len(made)-n), "import", "imports"))
			return err
		}
		if _, err := fmt.Fprintf(w, "import %d of organization %s: %d new, %d changed\n", m.ID, m.OrgID, m.Inserted, m.Changed); err != nil {
			return err
		}
		if m.NoRules {
			a.Say("Next: %s has no rules to post by: `daybook rules apply FILE --org %s`.", m.OrgID, m.OrgID)
		}
	}
	if len(made) > 0 {
		a.Say("Next: `daybook accounting list --org %s` shows what is posted and what failed; "+
			"`daybook import undo %d --dry-run` what taking it back would do.", made[0].OrgID, made[0].ID)
	}
	return nil
}

package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// ErrDamaged: a file of the archive is not there, or is not the one that is on record. Bring it
// back from a copy of the bucket.
var ErrDamaged = failure.New(failure.Failure, "the file of the archive is damaged")

// Kind is what a file holds.
type Kind string

// The kinds of files whose rows can be brought back.
const (
	// Jobs that were completed or cancelled, with their attempts, links and receipts.
	Jobs Kind = "jobs"
	// Attempts at accounting jobs that are completed or cancelled.
	Attempts Kind = "attempts"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Jobs, Attempts} }

// Batch is what Move goes on from. The zero value is the beginning.
type Batch struct {
	// Rows is how many lines the last file has; 0: nothing is left.
	Rows int
	// Counts are its rows by table.
	Counts map[string]int64
	behind store.ArchivedRow
}

// Move moves the next jobs or attempts from the database to one file: those that the retention
// selects, the first ones first. The file is written, flushed, read again and compared before the
// transaction commits that removes its rows; a file that no transaction put on record holds rows
// that are still in the database. It fails with what is wrong with the storage (WriteError) or the
// database, and has then removed nothing.
func (a *Archive) Move(ctx context.Context, pool *pgxpool.Pool, kind Kind, r store.Retention,
	last Batch,
) (Batch, error) {
	next := Batch{behind: last.behind}
	err := store.Begin(ctx, pool, func(tx pgx.Tx) error {
		if err := store.LockArchive(ctx, tx, false); err != nil {
			return err
		}
		var rows []store.ArchivedRow
		var err error
		if kind == Jobs {
			rows, err = store.ArchivableJobs(ctx, tx, r, last.behind)
		} else {
			rows, err = store.ArchivableAttempts(ctx, tx, r, last.behind)
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		file, content, err := pack(kind, rows)
		if err != nil {
			return err
		}
		if err := a.put(ctx, file, content); err != nil {
			return &WriteError{err}
		}
		next = Batch{Rows: len(rows), Counts: file.Counts, behind: rows[len(rows)-1]}
		return store.RemoveArchived(ctx, tx, file, rows)
	})
	if err != nil {
		return last, err
	}
	return next, nil
}

// pack makes the file of some rows. Equal rows make an equal file.
func pack(kind Kind, rows []store.ArchivedRow) (store.Archived, []byte, error) {
	f := store.Archived{
		Kind: string(kind), Lines: len(rows), Counts: map[string]int64{}, FirstAt: rows[0].EndedAt,
		LastAt: rows[0].EndedAt,
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	for i := range rows {
		row := &rows[i]
		f.Organizations = append(f.Organizations, row.OrgID)
		for n, c := range row.Counts {
			f.Counts[store.ArchivedTables[n]] += c
		}
		if row.EndedAt.Before(f.FirstAt) {
			f.FirstAt = row.EndedAt
		}
		if row.EndedAt.After(f.LastAt) {
			f.LastAt = row.EndedAt
		}
		if _, err := z.Write(append(row.Line, '\n')); err != nil {
			return f, nil, err
		}
	}
	if err := z.Close(); err != nil {
		return f, nil, err
	}
	slices.Sort(f.Organizations)
	f.Organizations = slices.Compact(f.Organizations)
	sum := sha256.Sum256(out.Bytes())
	f.Bytes, f.SHA256 = int64(out.Len()), hex.EncodeToString(sum[:])
	f.Key = fmt.Sprintf("%s/%s/%019d-%s.ndjson.gz", kind, f.FirstAt.UTC().Format("2006-01"), f.FirstAt.UnixMicro(),
		f.SHA256[:16])
	return f, out.Bytes(), nil
}

// manifestOf is the key of a file's manifest.
func manifestOf(key string) string { return key + ".manifest.json" }

// put writes a file and its manifest, and reads the file again.
func (a *Archive) put(ctx context.Context, f store.Archived, content []byte) error {
	manifest, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := a.writeFlushed(ctx, f.Key, "application/gzip", content); err != nil {
		return err
	}
	if err := a.writeFlushed(ctx, manifestOf(f.Key), "application/json", append(manifest, '\n')); err != nil {
		return err
	}
	_, err = a.read(ctx, f)
	return err
}

// read reads a file, and compares it with what is on record.
func (a *Archive) read(ctx context.Context, f store.Archived) ([]byte, error) {
	content, err := a.bucket.ReadAll(ctx, f.Key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("%w: %s is not there", ErrDamaged, f.Key)
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	if int64(len(content)) != f.Bytes || hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("%w: %s has %d bytes and the SHA-256 %x, and not %d and %s", ErrDamaged, f.Key, len(content),
			sum, f.Bytes, f.SHA256)
	}
	return content, nil
}

// line is a line of a file as far as the archive reads it.
type line struct {
	OrgID string `json:"org_id"`
	Jobs  []struct {
		ID         string    `json:"id"`
		FinishedAt time.Time `json:"finished_at"`
	} `json:"jobs"`
	Attempts []struct {
		EndedAt    time.Time `json:"ended_at"`
		DocumentID string    `json:"document_id"`
	} `json:"attempts"`
	Links []struct {
		Kind string `json:"kind"`
		ID   string `json:"id"`
	} `json:"links"`
	Receipts   []struct{} `json:"receipts"`
	Deliveries []struct{} `json:"deliveries"`
	Steps      []struct{} `json:"steps"`
	raw        json.RawMessage
}

// row is the line as it was read from the database.
func (l *line) row() store.ArchivedRow {
	r := store.ArchivedRow{OrgID: l.OrgID, Line: l.raw, Counts: [6]int64{
		int64(len(l.Jobs)), int64(len(l.Attempts)), int64(len(l.Links)), int64(len(l.Receipts)), int64(len(l.Deliveries)),
		int64(len(l.Steps)),
	}}
	if len(l.Jobs) > 0 {
		r.EndedAt = l.Jobs[0].FinishedAt
	} else if len(l.Attempts) > 0 {
		r.EndedAt = l.Attempts[0].EndedAt
	}
	return r
}

// lines reads the lines of a file.
func (a *Archive) lines(ctx context.Context, f store.Archived) ([]line, error) {
	content, err := a.read(ctx, f)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, f.Key, err)
	}
	var all []line
	counts := map[string]int64{}
	in := bufio.NewReader(z)
	for {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		l := line{raw: bytes.TrimSuffix(text, []byte("\n"))}
		if err == nil {
			err = json.Unmarshal(l.raw, &l)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s, line %d: %w", ErrDamaged, f.Key, len(all)+1, err)
		}
		for n, c := range l.row().Counts {
			counts[store.ArchivedTables[n]] += c
		}
		all = append(all, l)
	}
	for table, want := range f.Counts {
		if counts[table] != want || len(all) != f.Lines {
			return nil, fmt.Errorf("%w: %s has %d lines with %d %s, and not %d with %d", ErrDamaged, f.Key, len(all),
				counts[table], table, f.Lines, want)
		}
	}
	return all, nil
}

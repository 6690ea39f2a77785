package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/internal/store"
)

// Erase removes from the archive what a scope has in it. A file with other rows as well is replaced
// by one without these. The replacement is on record, and what the old file held is counted by
// note, in one transaction; then the old file is deleted. When the program ends between the two,
// the next erasure deletes it. Files that are not on record and hold something of the scope are
// deleted: what is in them is in the database, or in another file. With dry only the rows are
// counted.
func (a *Archive) Erase(ctx context.Context, pool *pgxpool.Pool, s store.EraseScope, dry bool,
	note func(context.Context, pgx.Tx, map[string]int64) error,
) (map[string]int64, error) {
	total := map[string]int64{}
	files, err := store.Archives(ctx, pool, s.OrgID)
	if err != nil {
		return total, err
	}
	for i := range files {
		if files[i].ErasedAt != nil {
			continue
		}
		counts, err := a.eraseIn(ctx, pool, files[i], s, dry, note)
		if err != nil {
			return total, err
		}
		for table, n := range counts {
			total[table] += n
		}
	}
	if dry {
		return total, nil
	}
	if err := a.deleteErased(ctx, pool); err != nil {
		return total, err
	}
	return total, a.deleteUnrecorded(ctx, pool, s)
}

// isOf reports whether a line belongs to a scope.
func (l *line) isOf(s store.EraseScope) bool {
	if l.OrgID != s.OrgID {
		return false
	}
	if s.Kind == "" {
		return true
	}
	for _, link := range l.Links {
		if link.Kind == s.Kind && link.ID == s.ID {
			return true
		}
	}
	for i := range l.Attempts {
		if document := l.Attempts[i].DocumentID; document != "" && document == s.Document() {
			return true
		}
	}
	return false
}

// eraseIn erases a scope in one file.
func (a *Archive) eraseIn(ctx context.Context, pool *pgxpool.Pool, f store.Archived, s store.EraseScope, dry bool,
	note func(context.Context, pgx.Tx, map[string]int64) error,
) (map[string]int64, error) {
	all, err := a.lines(ctx, f)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	var kept []store.ArchivedRow
	for i := range all {
		row := all[i].row()
		if !all[i].isOf(s) {
			kept = append(kept, row)
			continue
		}
		counts["archive_files"] = 1
		for n, c := range row.Counts {
			counts["archived_"+store.ArchivedTables[n]] += c
		}
	}
	if len(counts) == 0 || dry {
		return counts, nil
	}
	return counts, store.Begin(ctx, pool, func(tx pgx.Tx) error {
		if err := store.LockArchive(ctx, tx, false); err != nil {
			return err
		}
		var by *store.Archived
		if len(kept) > 0 {
			file, content, err := pack(Kind(f.Kind), kept)
			if err != nil {
				return err
			}
			if err := a.put(ctx, file, content); err != nil {
				return &WriteError{err}
			}
			by = &file
		}
		replaced, err := store.ReplaceArchived(ctx, tx, f.Key, by)
		if err != nil || !replaced {
			return err
		}
		return note(ctx, tx, counts)
	})
}

// deleteErased deletes the files that erasures have replaced.
func (a *Archive) deleteErased(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := store.Archives(ctx, pool, "")
	if err != nil {
		return err
	}
	for i := range files {
		if files[i].ErasedAt == nil {
			continue
		}
		if err := a.delete(ctx, files[i].Key); err != nil {
			return err
		}
		if err := store.Begin(ctx, pool,
			func(tx pgx.Tx) error { return store.ForgetArchived(ctx, tx, files[i].Key) }); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a file and its manifest, if they are there.
func (a *Archive) delete(ctx context.Context, key string) error {
	for _, k := range []string{key, manifestOf(key)} {
		if err := a.bucket.Delete(ctx, k); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return err
		}
	}
	return nil
}

// deleteUnrecorded deletes files that are not on record and hold something of the scope. Nothing is
// archived meanwhile, so that no file is one that is about to be put on record.
func (a *Archive) deleteUnrecorded(ctx context.Context, pool *pgxpool.Pool, s store.EraseScope) error {
	return store.Begin(ctx, pool, func(tx pgx.Tx) error {
		if err := store.LockArchive(ctx, tx, true); err != nil {
			return err
		}
		keys, err := a.unrecorded(ctx, tx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			holds, err := a.holds(ctx, key, s)
			if err != nil {
				return err
			}
			if holds {
				if err := a.delete(ctx, key); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// holds reports whether a file that is not on record holds something of a scope. A manifest, or a
// file that is not whole, holds nothing that can be read.
func (a *Archive) holds(ctx context.Context, key string, s store.EraseScope) (bool, error) {
	content, err := a.bucket.ReadAll(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return false, nil //nolint:nilerr // it is no file of rows
	}
	decoder := json.NewDecoder(z)
	for {
		var l line
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return true, nil //nolint:nilerr // what cannot be read to its end may hold it; what is in it is in the database
		}
		if l.isOf(s) {
			return true, nil
		}
	}
}

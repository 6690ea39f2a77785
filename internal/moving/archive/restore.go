package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
)

// restoreLines is how many lines one statement brings back.
const restoreLines = 200

// Restore brings rows of a file back as they were, in one transaction: those of an organization, or
// all when org is empty. What is there already is left out, so that twice is as once. The file
// stays, and stays on record. It fails with ErrDamaged for a file that is not the one on record.
func (a *Archive) Restore(ctx context.Context, pool *pgxpool.Pool, f store.Archived,
	org string,
) (store.Restored, error) {
	total := store.Restored{Rows: map[string]int64{}}
	if f.ErasedAt != nil {
		return total, nil
	}
	all, err := a.lines(ctx, f)
	if err != nil {
		return total, err
	}
	var raw []json.RawMessage
	for i := range all {
		if org == "" || all[i].OrgID == org {
			raw = append(raw, all[i].raw)
		}
	}
	err = store.Begin(ctx, pool, func(tx pgx.Tx) error {
		for part := range slices.Chunk(raw, restoreLines) {
			r, err := store.RestoreLines(ctx, tx, part)
			if err != nil {
				return err
			}
			for table, n := range r.Rows {
				total.Rows[table] += n
			}
		}
		return store.NoteRestored(ctx, tx, f.Key)
	})
	if err != nil {
		return store.Restored{Rows: map[string]int64{}}, err
	}
	back := total.Rows["jobs"]
	if f.Kind == string(Attempts) {
		back = total.Rows["attempts"]
	}
	total.Present = int64(len(raw)) - back
	return total, nil
}

// Lines reads the lines of a file that is on record.
func (a *Archive) Lines(ctx context.Context, f store.Archived) ([]json.RawMessage, error) {
	all, err := a.lines(ctx, f)
	raw := make([]json.RawMessage, len(all))
	for i := range all {
		raw[i] = all[i].raw
	}
	return raw, err
}

// Verified is what Verify found.
type Verified struct {
	Files int   `json:"files"`
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
	// Damaged says what is wrong, a text a file.
	Damaged []string `json:"damaged"`
	// Unrecorded are files that no transaction put on record: what is in them is in the database, or
	// in another file.
	Unrecorded []string `json:"unrecorded"`
}

// Verify reads every file that is on record, and compares its size, hash, lines and rows; and lists
// files that are not on record.
func (a *Archive) Verify(ctx context.Context, pool *pgxpool.Pool) (Verified, error) {
	v := Verified{Damaged: []string{}, Unrecorded: []string{}}
	unrecorded, err := a.unrecorded(ctx, pool)
	if err != nil {
		return v, err
	}
	v.Unrecorded = append(v.Unrecorded, unrecorded...)
	files, err := store.Archives(ctx, pool, "")
	if err != nil {
		return v, err
	}
	for i := range files {
		if files[i].ErasedAt != nil {
			continue
		}
		lines, err := a.lines(ctx, files[i])
		switch {
		case errors.Is(err, ErrDamaged):
			v.Damaged = append(v.Damaged, strings.TrimPrefix(err.Error(), ErrDamaged.Error()+": "))
		case err != nil:
			return v, err
		}
		v.Files++
		v.Lines += int64(len(lines))
		v.Bytes += files[i].Bytes
	}
	return v, nil
}

// unrecorded lists the files of jobs and attempts that are not on record. They are listed before
// the records are read: a file that is put on record meanwhile is none of them.
func (a *Archive) unrecorded(ctx context.Context, q store.Querier) ([]string, error) {
	var keys []string
	for object, err := range a.objects(ctx) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, object)
	}
	files, err := store.Archives(ctx, q, "")
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range files {
		known[files[i].Key], known[manifestOf(files[i].Key)] = true, true
	}
	return slices.DeleteFunc(keys, func(key string) bool { return known[key] }), nil
}

// objects are the keys of the files of jobs and attempts, with their manifests.
func (a *Archive) objects(ctx context.Context) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		list := a.bucket.List(nil)
		for {
			object, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", fmt.Errorf("list the archive: %w", err))
				return
			}
			if !object.IsDir && (strings.HasPrefix(object.Key, string(Jobs)+"/") ||
				strings.HasPrefix(object.Key, string(Attempts)+"/")) {
				if !yield(object.Key, nil) {
					return
				}
			}
		}
	}
}

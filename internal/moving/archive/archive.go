package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // an archive may be a directory: file:///…

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// ErrAddress: an archive cannot be opened by its address.
var ErrAddress = failure.New(failure.Invalid, "the archive cannot be opened")

// Archive is a bucket, or a directory.
type Archive struct {
	bucket *blob.Bucket
	// dir is the directory of a bucket of files; empty: the bucket is another storage, which flushes
	// by itself.
	dir string
}

// Open opens an archive by the URL of a bucket of gocloud.dev/blob, such as
// file:///var/lib/daybook/archive, or by the path of a directory. The directory is made. For
// another storage than files, the program has to import its driver. Errors repeat nothing of a URL
// but its scheme: it may hold credentials. Those of the address are ErrAddress.
func Open(ctx context.Context, address string) (*Archive, error) {
	scheme, _, isURL := strings.Cut(address, "://")
	switch {
	case address == "":
		return nil, fmt.Errorf("%w: name a directory, or a URL such as file:///var/lib/daybook/archive", ErrAddress)
	case !isURL:
		dir, err := filepath.Abs(address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAddress, err)
		}
		return open(ctx, &url.URL{Scheme: "file", Path: filepath.ToSlash(dir)})
	case scheme == "file":
		u, err := url.Parse(address)
		if err != nil || u.Host != "" || u.Path == "" {
			return nil, fmt.Errorf("%w: want a URL such as file:///var/lib/daybook/archive", ErrAddress)
		}
		return open(ctx, u)
	case !blob.DefaultURLMux().ValidBucketScheme(scheme):
		return nil, fmt.Errorf("%w: this program has no driver for %s; it knows %s. Another one is there in a program "+
			"that imports its package of gocloud.dev/blob",
			ErrAddress, scheme, strings.Join(blob.DefaultURLMux().BucketSchemes(), ", "))
	}
	bucket, err := blob.OpenBucket(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%w: check the bucket's name, the credentials and the parameters of the driver of %s",
			ErrAddress, scheme)
	}
	return &Archive{bucket: bucket}, nil
}

// open opens a directory, which it makes.
func open(ctx context.Context, u *url.URL) (*Archive, error) {
	q := u.Query()
	q.Set("create_dir", "1")
	q.Set("no_tmp_dir", "1")
	q.Set("metadata", "skip")
	at := *u
	at.RawQuery = q.Encode()
	bucket, err := blob.OpenBucket(ctx, at.String())
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: the directory is refused: let the program read and write there", ErrAddress)
	case err != nil:
		return nil, fmt.Errorf("%w: it must be a directory", ErrAddress)
	}
	return &Archive{bucket: bucket, dir: filepath.FromSlash(u.Path)}, nil
}

// Close closes the bucket.
func (a *Archive) Close() error { return a.bucket.Close() }

// RemoveTasks moves up to limit completed tasks, the oldest first, from the database to the
// archive, in one file, and returns how many; 0: nothing is left that was completed before the
// time. It fails with what is wrong with the storage or the database, and has then removed nothing.
func (a *Archive) RemoveTasks(ctx context.Context, pool *pgxpool.Pool, before time.Time, limit int) (int, error) {
	n := 0
	err := store.Begin(ctx, pool, func(tx pgx.Tx) error {
		tasks, err := store.RemoveTasks(ctx, tx, before, limit)
		if err != nil || len(tasks) == 0 {
			return err
		}
		n = len(tasks)
		return a.write(ctx, tasks)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// WriteError is the failure of the storage.
type WriteError struct{ Cause error }

// Error implements error.
func (e *WriteError) Error() string {
	return "the archive does not accept the rows that are to be removed, and they stay in the database: " +
		e.Cause.Error()
}

// Unwrap returns the storage's error.
func (e *WriteError) Unwrap() error { return e.Cause }

// write writes a file, whole or not at all, and has it flushed.
func (a *Archive) write(ctx context.Context, tasks []store.RemovedTask) error {
	var lines bytes.Buffer
	for _, t := range tasks {
		lines.Write(t.Facts)
		lines.WriteByte('\n')
	}
	sum := sha256.Sum256(lines.Bytes())
	key := fmt.Sprintf("tasks/%019d-%019d-%s.jsonl", tasks[0].ID, tasks[len(tasks)-1].ID, hex.EncodeToString(sum[:8]))
	if err := a.writeFlushed(ctx, key, "application/jsonl", lines.Bytes()); err != nil {
		return &WriteError{err}
	}
	return nil
}

// writeFlushed writes a file, whole or not at all, and has it flushed, with the directories that
// name it: after a crash of the machine they are there.
func (a *Archive) writeFlushed(ctx context.Context, key, contentType string, content []byte) error {
	if err := a.bucket.WriteAll(ctx, key, content, &blob.WriterOptions{ContentType: contentType}); err != nil {
		return err
	}
	if a.dir == "" {
		return nil
	}
	root := filepath.Clean(a.dir)
	for path := filepath.Join(root, filepath.FromSlash(key)); ; path = filepath.Dir(path) {
		if err := flush(path); err != nil || path == root || path == filepath.Dir(path) {
			return err
		}
	}
}

// flush has the system write what it holds of a file or directory.
func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

package importer_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"

	"github.com/daybook-dev/daybook/internal/moving/importer"
)

// archived are the entries of the archives of these tests, of which two are wanted.
var archived = []struct{ name, text string }{
	{"z.csv", "last"}, {"sub/a.CSV", "first"}, {"sub/.hidden.csv", "no"}, {".old/b.csv", "no"}, {"readme.txt", "no"}, {"csv", "no"},
}

func tarred(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "dir.csv/", Typeflag: tar.TypeDir, Mode: 0o755}))
	for _, e := range archived {
		require.NoError(t, w.WriteHeader(&tar.Header{
			Name: e.name, Typeflag: tar.TypeReg, Mode: 0o644,
			Size: int64(len(e.text)),
		}))
		_, err := w.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func compressed(t *testing.T, w io.WriteCloser, b *bytes.Buffer, data []byte) []byte {
	t.Helper()
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	return compressed(t, gzip.NewWriter(&b), &b, data)
}

func xzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.NewWriter(&b)
	require.NoError(t, err)
	return compressed(t, w, &b, data)
}

func zipped(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	_, err := w.Create("dir.csv/")
	require.NoError(t, err)
	for _, e := range archived {
		f, err := w.Create(e.name)
		require.NoError(t, err)
		_, err = f.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// seen is what a walk yields.
type seen struct{ name, file, text string }

func walk(t *testing.T, s *importer.Sources) (found []seen, failed []error) {
	t.Helper()
	for source, err := range s.All(t.Context()) {
		var data []byte
		if err == nil {
			data, err = io.ReadAll(source.Reader)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		found = append(found, seen{filepath.Base(source.Name), source.File, string(data)})
	}
	return found, failed
}

func put(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestSourcesOfArchives(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"a.tar": tarred(t), "a.tar.gz": gzipped(t, tarred(t)), "a.TGZ": gzipped(t, tarred(t)),
		"a.tar.xz": xzipped(t, tarred(t)), "a.txz": xzipped(t, tarred(t)), "a.zip": zipped(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := put(t, t.TempDir(), name, data)
			s, err := importer.FindSources([]string{path}, ".csv")
			require.NoError(t, err)
			assert.Zero(t, s.Files(), "not known yet")
			assert.Equal(t, int64(len(data)), s.Size())
			var read int
			s.OnRead = func(n int) { read += n }
			want := []seen{{name + "!z.csv", "z.csv", "last"}, {"a.CSV", "sub/a.CSV", "first"}}
			for range 2 { // it can be read again
				found, failed := walk(t, s)
				assert.Empty(t, failed)
				assert.Equal(t, want, found)
			}
			assert.Positive(t, read)
			for _, err := range s.All(t.Context()) {
				require.NoError(t, err)
				break // the rest is not read
			}

			half := put(t, t.TempDir(), name, data[:len(data)/2])
			s, err = importer.FindSources([]string{half}, ".csv")
			require.NoError(t, err)
			_, failed := walk(t, s)
			require.NotEmpty(t, failed, "it is cut off")
		})
	}
}

// TestSourcesNoticesDamage: a byte that changed behind the last file is noticed too.
func TestSourcesNoticesDamage(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{"a.tar.gz": gzipped(t, tarred(t)), "a.tar.xz": xzipped(t, tarred(t))} {
		data[len(data)-7] ^= 0x40
		good := put(t, t.TempDir(), "good.csv", []byte("good"))
		s, err := importer.FindSources([]string{put(t, t.TempDir(), name, data), good}, ".csv")
		require.NoError(t, err)
		found, failed := walk(t, s)
		require.Len(t, failed, 1, name)
		assert.ErrorIs(t, failed[0], importer.ErrInvalid)
		assert.ErrorContains(t, failed[0], "it may be damaged or cut off")
		assert.Equal(t, "good.csv", found[len(found)-1].file, "the next one follows")
	}
}

func TestSourcesOfFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, e := range archived {
		put(t, dir, e.name, []byte(e.text))
	}
	named := put(t, t.TempDir(), "named.txt", []byte("named"))
	s, err := importer.FindSources([]string{
		named, dir, filepath.Join(dir, "z.csv"),
		filepath.Join(dir, "sub", "..", "z.csv"),
	}, ".csv", ".txx")
	require.NoError(t, err)
	assert.Equal(t, 3, s.Files())
	found, failed := walk(t, s)
	assert.Empty(t, failed)
	assert.Equal(t, []seen{
		{"named.txt", "named.txt", "named"},
		{"a.CSV", "sub/a.CSV", "first"},
		{"z.csv", "z.csv", "last"},
	}, found)
}

func TestSourcesWithoutFiles(t *testing.T) {
	t.Parallel()
	_, err := importer.FindSources([]string{t.TempDir()}, ".csv", ".tsv")
	assert.ErrorIs(t, err, importer.ErrNoFiles)
	assert.ErrorContains(t, err, "there is no file that ends in .csv or .tsv")
	_, err = importer.FindSources([]string{filepath.Join(t.TempDir(), "none.csv")}, ".csv")
	assert.ErrorIs(t, err, os.ErrNotExist)

	s, err := importer.FindSources([]string{put(t, t.TempDir(), "a.zip", zipped(t))}, ".json")
	require.NoError(t, err)
	_, failed := walk(t, s)
	require.Len(t, failed, 1)
	assert.ErrorIs(t, failed[0], importer.ErrNoFiles)

	path := put(t, t.TempDir(), "gone.csv", nil)
	s, err = importer.FindSources([]string{path}, ".csv")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	_, failed = walk(t, s)
	require.Len(t, failed, 1)
	assert.ErrorIs(t, failed[0], os.ErrNotExist)
}

func TestSourcesEndWithTheContext(t *testing.T) {
	t.Parallel()
	path := put(t, t.TempDir(), "a.tar.gz", gzipped(t, tarred(t)))
	s, err := importer.FindSources([]string{path}, ".csv")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last error
	for _, err := range s.All(ctx) {
		last = err
	}
	assert.ErrorIs(t, last, context.Canceled)
}

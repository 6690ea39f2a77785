package importer

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/ulikunitz/xz"
)

// archiveKind tells how an archive is read.
type archiveKind int

const (
	noArchive archiveKind = iota
	zipArchive
	tarArchive
	tarGzip
	tarXZ
)

var archiveSuffixes = []struct {
	suffix string
	kind   archiveKind
}{
	{".zip", zipArchive},
	{".tar", tarArchive},
	{".tar.gz", tarGzip},
	{".tgz", tarGzip},
	{".tar.xz", tarXZ},
	{".txz", tarXZ},
}

func archiveOf(path string) archiveKind {
	path = strings.ToLower(path)
	for _, a := range archiveSuffixes {
		if strings.HasSuffix(path, a.suffix) {
			return a.kind
		}
	}
	return noArchive
}

// archive visits the wanted files of an archive in its order.
func (w *walk) archive(f sourceFile, opened *os.File) error {
	if f.archive == zipArchive {
		return w.zip(f, opened)
	}
	var stream io.Reader = bufio.NewReaderSize(&sourceReader{walk: w, inner: opened}, 1<<16)
	var err error
	switch f.archive {
	case tarGzip:
		stream, err = gzip.NewReader(stream)
	case tarXZ:
		stream, err = xz.NewReader(stream)
	default: // a plain tar
	}
	if err != nil {
		return damaged(err)
	}
	end := &endReader{inner: stream}
	if err := w.tar(f, end); err != nil || w.stopped {
		return damaged(err)
	}
	// What follows the last file holds the checksum of the compressed stream.
	if _, err := io.Copy(io.Discard, end); err != nil {
		return damaged(err)
	}
	if end.zeros < tarBlock {
		return damaged(errNoEnd)
	}
	return nil
}

// tarBlock is the unit of a tar archive, which ends with at least one block of zeros.
const tarBlock = 512

var errNoEnd = errors.New("its end is missing")

// endReader counts the zeros that a stream ends with.
type endReader struct {
	inner io.Reader
	zeros int
}

// Read implements io.Reader.
func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.inner.Read(p)
	other := len(bytes.TrimRight(p[:n], "\x00"))
	if other > 0 {
		r.zeros = 0
	}
	r.zeros += n - other
	return n, err
}

func (w *walk) tar(f sourceFile, stream io.Reader) error {
	r := tar.NewReader(stream)
	for !w.stopped {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case header.Typeflag == tar.TypeReg && w.sources.wants(header.Name):
			w.visit(Source{Name: f.path + "!" + header.Name, File: header.Name, Reader: r})
		}
	}
	return nil
}

func (w *walk) zip(f sourceFile, opened *os.File) error {
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	r, err := zip.NewReader(opened, info.Size())
	if err != nil {
		return damaged(err)
	}
	for _, entry := range r.File {
		if entry.Mode().IsDir() || !w.sources.wants(entry.Name) {
			continue
		}
		if err := w.zipEntry(f, entry); err != nil || w.stopped {
			return damaged(err)
		}
	}
	return nil
}

func (w *walk) zipEntry(f sourceFile, entry *zip.File) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	opened, err := entry.Open()
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	w.visit(Source{Name: f.path + "!" + entry.Name, File: entry.Name, Reader: opened})
	if w.sources.OnRead != nil {
		w.sources.OnRead(int(min(entry.CompressedSize64, uint64(w.sources.size))))
	}
	return nil
}

// damaged words the error of an archive that cannot be read.
func damaged(err error) error {
	if err == nil {
		return nil
	}
	return invalid("the archive cannot be read: %v; it may be damaged or cut off", err)
}

package importer

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Source is one file to import, on disk or within an archive.
type Source struct {
	// Name is the file's path; within an archive the archive's path, "!" and the path inside.
	Name string
	// File is the path inside the named archive or folder, or the base name of a named file.
	File string
	// Reader reads the file once, until the next source is asked for.
	Reader io.Reader
}

// Sources are the files that a list of paths leads to.
type Sources struct {
	files    []sourceFile
	suffixes []string
	size     int64
	// OnRead, if set, is called with the number of bytes that were read from disk, for showing
	// progress.
	OnRead func(n int)
}

// sourceFile is one file on disk.
type sourceFile struct {
	path, file string
	archive    archiveKind
}

// FindSources finds the files of the paths. A path to a file is that file, with any suffix; a path
// to a folder is all files below it with one of the suffixes; an archive (.zip, .tar, .tar.gz,
// .tgz, .tar.xz, .txz) is the files in it with one of the suffixes, which are found when it is
// read. Files are in the order of the paths, those of a folder sorted; each comes once. Files and
// folders whose names begin with a dot are left out in folders and archives.
//
// A path that does not exist is an error. ErrNoFiles: there is no file at all.
func FindSources(paths []string, suffixes ...string) (*Sources, error) {
	s := &Sources{suffixes: suffixes}
	seen := map[string]bool{}
	add := func(f sourceFile, size int64) {
		if f.path = filepath.Clean(f.path); !seen[f.path] {
			seen[f.path] = true
			s.files = append(s.files, f)
			s.size += size
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			add(sourceFile{path, filepath.Base(path), archiveOf(path)}, info.Size())
			continue
		}
		below, err := s.below(path)
		if err != nil {
			return nil, err
		}
		for _, f := range below {
			info, err := os.Stat(f.path)
			if err != nil {
				return nil, err
			}
			add(f, info.Size())
		}
	}
	if len(s.files) == 0 {
		return nil, s.none()
	}
	return s, nil
}

func (s *Sources) none() error {
	return fmt.Errorf("%w: there is no file that ends in %s", ErrNoFiles, strings.Join(s.suffixes, " or "))
}

// below returns the files of a folder, sorted.
func (s *Sources) below(folder string) ([]sourceFile, error) {
	var found []sourceFile
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && rel != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.IsDir() && s.wants(filepath.ToSlash(rel)):
			found = append(found, sourceFile{path: path, file: filepath.ToSlash(rel)})
		}
		return nil
	})
	slices.SortFunc(found, func(a, b sourceFile) int { return strings.Compare(a.path, b.path) })
	return found, err
}

// wants reports whether a file of a folder or an archive, by its path there, is of the wanted kind.
func (s *Sources) wants(path string) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for name := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(name, ".") && strings.Trim(name, ".") != "" {
			return false
		}
	}
	return slices.ContainsFunc(s.suffixes,
		func(suffix string) bool { return strings.HasSuffix(strings.ToLower(base), suffix) })
}

// Size is how many bytes the files have on disk.
func (s *Sources) Size() int64 { return s.size }

// Files is the number of files; 0 if there is an archive, whose files are not known before it is
// read.
func (s *Sources) Files() int {
	if slices.ContainsFunc(s.files, func(f sourceFile) bool { return f.archive != noArchive }) {
		return 0
	}
	return len(s.files)
}

// All opens one file after the other; it can be called again. Nothing is unpacked to disk, and an
// archive needs only the memory of its decompressor.
//
// A file or archive that cannot be opened or read to its end yields an error with its name, and the
// next one follows. When ctx ends its error is the last.
func (s *Sources) All(ctx context.Context) iter.Seq2[Source, error] {
	return func(yield func(Source, error) bool) {
		found := false
		for _, f := range s.files {
			w := &walk{sources: s, ctx: ctx, yield: yield}
			err := w.file(f)
			found = found || w.found || err != nil
			switch {
			case w.stopped:
				return
			case ctx.Err() != nil:
				yield(Source{Name: f.path, File: f.file}, ctx.Err())
				return
			case err != nil:
				if !yield(Source{Name: f.path, File: f.file}, err) {
					return
				}
			}
		}
		if !found {
			yield(Source{Name: s.files[0].path}, s.none())
		}
	}
}

// walk reads one file on disk, which may be an archive.
type walk struct {
	sources *Sources
	ctx     context.Context // ends the reads of this walk
	yield   func(Source, error) bool
	found   bool
	stopped bool
}

func (w *walk) file(f sourceFile) error {
	opened, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	if f.archive != noArchive {
		return w.archive(f, opened)
	}
	w.visit(Source{Name: f.path, File: f.file, Reader: &sourceReader{walk: w, inner: opened}})
	return nil
}

func (w *walk) visit(s Source) {
	w.found = true
	w.stopped = !w.yield(s, nil)
}

// sourceReader reads from disk until the context ends, and reports what it reads.
type sourceReader struct {
	walk  *walk
	inner io.Reader
}

// Read implements io.Reader.
func (r *sourceReader) Read(p []byte) (int, error) {
	if err := r.walk.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.inner.Read(p)
	if r.walk.sources.OnRead != nil {
		r.walk.sources.OnRead(n)
	}
	return n, err
}

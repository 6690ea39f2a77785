package importer

import (
	"slices"
	"strings"
)

// csvFile is what the first pass found out about a file.
type csvFile struct {
	name string
	// file is what ids of its documents begin with, where files are apart.
	file string
	err  error // why none of it is imported
	// silent: the error of the archive reports it.
	silent  bool
	skipped SkippedRows
}

// sameFile refuses a file whose documents would have the ids of those of another one.
func (c *CSV) sameFile(source Source) error {
	same := func(f csvFile) bool { return f.file == source.File && f.err == nil }
	if i := slices.IndexFunc(c.files, same); i >= 0 && c.mapping.files == filesApart {
		return invalid("its documents would have the ids of those in %s, because ids begin with %s (group.files: apart); "+
			"import a folder that has both", c.files[i].name, source.File)
	}
	return nil
}

// refuseArchive refuses all files of a damaged archive, because its checksum covers all of them.
func (c *CSV) refuseArchive(name string, err error) {
	for i := range c.files {
		if f := &c.files[i]; f.err == nil && strings.HasPrefix(f.name, name+"!") {
			f.err, f.silent = err, true
		}
	}
}

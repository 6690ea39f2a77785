package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/daybook-dev/daybook/internal/text/bom"
)

// ReadInput reads a file of text, or standard input for "-", without the byte order mark that some
// programs write.
func (a *App) ReadInput(path string) ([]byte, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(a.Stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if data, err = bom.Trim(data); err != nil {
		return nil, Usagef("%s: %v", path, err)
	}
	return data, nil
}

// unfinishedFor is for how long a file that is being written may not have changed. After that its
// run was killed.
const unfinishedFor = 24 * time.Hour

// WriteFile writes a file beside the one that is wanted, readable by its owner, and puts it in that
// one's place when it is complete. What is there and is no file, such as a pipe or /dev/null, is
// written to. What runs have left that were killed is removed.
func WriteFile(path string, write func(io.Writer) error) error {
	if there, err := os.Stat(path); err == nil && !there.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	beside := "." + filepath.Base(path) + ".*.unfinished"
	f, err := os.CreateTemp(filepath.Dir(path), beside)
	if err != nil {
		return err
	}
	// a name that is no pattern has none that are found
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(path), beside))
	for _, name := range others {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > unfinishedFor {
			_ = os.Remove(name)
		}
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

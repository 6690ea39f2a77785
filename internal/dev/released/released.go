// Package released knows the newest release: its record under testdata, which tests compare this
// build with. It is for tests alone.
package released

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// The newest release. A release that is made becomes it when what follows the one before it was
// tested (CONTRIBUTING.md, A release).
const (
	// Version is its folder under testdata, and its heading in CHANGELOG.md.
	Version = "0.1.0"
	// Schema is its last migration. Those that follow are tested beside its programs.
	Schema = 34
)

// Path is where a file of its record is. root is the checkout.
func Path(root, file string) string { return filepath.Join(root, "testdata", Version, file) }

// Dump is its database as statements: every table has rows, and the roles have their rights.
func Dump(root string) (text string, err error) {
	packed, err := os.Open(Path(root, "dump.sql.gz"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	z, err := gzip.NewReader(packed)
	if err != nil {
		return "", err
	}
	plain, err := io.ReadAll(z)
	return string(plain), err
}

// unreleased is the heading of what the next release will have.
const unreleased = "Unreleased"

// heading is one of CHANGELOG.md's versions, or unreleased.
var heading = regexp.MustCompile(`(?m)^## (\S+)`)

// MayKeep returns an error unless the release that is being made is Version: its record may be
// written, and that of a release which is out may not. root is the checkout.
func MayKeep(root string) error {
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	return mayKeep(string(log))
}

func mayKeep(log string) error {
	headings := heading.FindAllStringSubmatch(log, 2)
	switch {
	case len(headings) == 1 && headings[0][1] == unreleased, len(headings) > 0 && headings[0][1] == Version:
		return nil
	case len(headings) > 1 && headings[0][1] == unreleased:
		return fmt.Errorf("%s is out, and its record stays: a release is made under a heading of its own in CHANGELOG.md",
			headings[1][1])
	}
	return fmt.Errorf("CHANGELOG.md begins with another version than %s: "+
		"name that version, and its last migration, in internal/dev/released", Version)
}

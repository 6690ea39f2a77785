// Command site ends what `make site` builds: it fails where a page of a version has a link, an
// anchor or a picture that leads nowhere, or loads anything from elsewhere. Then it writes the list
// of versions that the pages' menu shows, and a first page that leads to the newest.
//
//	site bin/site v0.1.0
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// version is a folder of the site.
type version struct {
	Name string `json:"name"`
	// Pages are the paths of its pages in it.
	Pages []string `json:"pages"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site FOLDER VERSION")
		os.Exit(2)
	}
	if err := finish(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// finish checks a version below a folder and lists those that are there.
func finish(folder, name string) error {
	wrong, err := check(os.DirFS(filepath.Join(folder, name)))
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return errors.New("mend these links:\n" + strings.Join(wrong, "\n"))
	}
	versions, err := list(folder)
	if err != nil {
		return err
	}
	text, err := json.Marshal(versions)
	if err != nil {
		return err
	}
	first := fmt.Sprintf("<!doctype html>\n<meta charset=\"utf-8\">\n<title>Daybook</title>\n"+
		"<meta http-equiv=\"refresh\" content=\"0; url=%[1]s/index.html\">\n<a href=\"%[1]s/index.html\">Daybook %[1]s</a>\n", versions[0].Name)
	for file, text := range map[string]string{"versions.js": "window.versions = " + string(text) + ";\n", "index.html": first} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil { //nolint:gosec // the site is public
			return err
		}
	}
	return nil
}

// list returns the versions of a folder: the newest release first, what is no release last.
func list(folder string) ([]version, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var versions []version
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		pages, err := pagesOf(os.DirFS(filepath.Join(folder, entry.Name())))
		if err != nil {
			return nil, err
		}
		versions = append(versions, version{entry.Name(), pages})
	}
	slices.SortFunc(versions, func(a, b version) int { return semver.Compare(b.Name, a.Name) })
	return versions, nil
}

// pagesOf are the paths of the pages of a version.
func pagesOf(site fs.FS) (pages []string, err error) {
	err = fs.WalkDir(site, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".html") {
			pages = append(pages, path)
		}
		return err
	})
	return pages, err
}

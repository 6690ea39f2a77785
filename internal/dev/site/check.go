package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// reference is what an element of a page leads to, or loads.
type reference struct {
	to string
	// loads says that the browser fetches it without a click.
	loads bool
}

// page is what the check reads of one.
type page struct {
	// ids are the names that links may end with.
	ids        map[string]bool
	references []reference
}

// loaded is what a style sheet loads.
var loaded = regexp.MustCompile(`@import|url\(\s*["']?(?:https?:)?//`)

// check returns what is wrong with the links of a site, a line each.
func check(site fs.FS) (wrong []string, err error) {
	names, err := pagesOf(site)
	if err != nil {
		return nil, err
	}
	pages := map[string]page{}
	for _, name := range names {
		if pages[name], err = read(site, name); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		for _, r := range pages[name].references {
			if fault := faultOf(site, pages, name, r); fault != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %s", name, r.to, fault))
			}
		}
	}
	sheets, err := fs.Glob(site, "*.css")
	if err != nil {
		return nil, err
	}
	for _, name := range sheets {
		text, err := fs.ReadFile(site, name)
		if err != nil {
			return nil, err
		}
		if at := loaded.FindString(string(text)); at != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s: it loads something from elsewhere", name, at))
		}
	}
	return wrong, nil
}

// faultOf says what is wrong with a reference; empty: nothing.
func faultOf(site fs.FS, pages map[string]page, from string, r reference) string {
	to, err := url.Parse(r.to)
	switch {
	case err != nil:
		return err.Error()
	case to.IsAbs() || to.Host != "":
		if r.loads {
			return "the page loads it from elsewhere"
		}
		return ""
	}
	name := from
	if to.Path != "" {
		name = path.Join(path.Dir(from), to.Path)
	}
	if info, err := fs.Stat(site, name); err != nil {
		return "there is no such file"
	} else if info.IsDir() {
		return "it is a folder: name its page, as a site that is opened as files needs it"
	}
	if to.Fragment != "" && !pages[name].ids[to.Fragment] {
		return "the page has no such heading"
	}
	return ""
}

// read returns the names and references of a page.
func read(site fs.FS, name string) (page, error) {
	text, err := fs.ReadFile(site, name)
	if err != nil {
		return page{}, err
	}
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", name, err)
	}
	p := page{ids: map[string]bool{}}
	for node := range root.Descendants() {
		for _, a := range node.Attr {
			switch a.Key {
			case "id":
				p.ids[a.Val] = true
			case "href":
				p.references = append(p.references, reference{a.Val, node.Data == "link"})
			case "src", "poster", "data":
				p.references = append(p.references, reference{a.Val, true})
			case "srcset":
				for candidate := range strings.SplitSeq(a.Val, ",") {
					p.references = append(p.references, reference{strings.Fields(candidate)[0], true})
				}
			}
		}
	}
	return p, nil
}

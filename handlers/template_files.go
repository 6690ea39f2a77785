package handlers

import (
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	texttemplate "text/template"
)

// builtinTemplates are those for the events of notifications.
//
//go:embed templates
var builtinTemplates embed.FS

// OpenMailTemplates reads the templates of a directory, beside those that come with Daybook:
// submission_receipt, status_change and reminder. An empty dir reads only the latter. A template is
// three files, of which one of the last two may be left out:
//
//	NAME.subject.txt   the subject
//	NAME.txt           the text
//	NAME.html          the HTML
//
// A file layout.txt or layout.html is around all of them, NAME.layout.txt or NAME.layout.html
// around one; an empty file is no layout. A layout has {{template "content" .}} where the message
// goes. The language is that of Go's text/template and html/template: {{.name}} is a parameter that
// must be there, {{index . "name"}} one that may be missing.
func OpenMailTemplates(dir string) (*MailTemplates, error) {
	inner, err := fs.Sub(builtinTemplates, "templates")
	if err != nil {
		return nil, err
	}
	files, err := templateFiles(inner)
	if err != nil {
		return nil, err
	}
	t := &MailTemplates{own: map[string]bool{}}
	if dir != "" {
		own, err := templateFiles(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("mail templates: %w", err)
		}
		for name := range own {
			if name, part, ok := templateFile(name); ok && name != layoutName && !strings.HasPrefix(part, layoutName) &&
				!t.own[name] {
				t.own[name] = true
				// A template of the directory replaces the whole of one that comes with Daybook.
				maps.DeleteFunc(files, func(file, _ string) bool { return strings.HasPrefix(file, name+".") })
			}
		}
		maps.Copy(files, own)
		standAlone(files, own)
	}
	if t.all, err = compile(files); err != nil {
		return nil, fmt.Errorf("mail templates: %w", err)
	}
	return t, nil
}

// standAlone keeps Daybook's own layout from around templates of a directory that has none.
func standAlone(files, own map[string]string) {
	for _, part := range []string{textPart, htmlPart} {
		if _, common := own[layoutName+"."+part]; common {
			continue
		}
		for file := range own {
			name, of, ok := templateFile(file)
			if _, layout := own[name+"."+layoutName+"."+part]; ok && of == part && !layout {
				files[name+"."+layoutName+"."+part] = ""
			}
		}
	}
}

// layoutName begins the names of the files that are around all templates.
const layoutName = "layout"

// The parts of a template, as the names of their files end.
const (
	subjectPart    = "subject.txt"
	textPart       = "txt"
	htmlPart       = "html"
	textLayoutPart = "layout.txt"
	htmlLayoutPart = "layout.html"
)

// templateFile is the template, and the part of it, that a file has. A file that does not look like
// a template at all is not ok.
func templateFile(file string) (name, part string, ok bool) {
	name, part, _ = strings.Cut(file, ".")
	return name, part, !strings.HasPrefix(file, ".") &&
		(strings.HasSuffix(file, ".txt") || strings.HasSuffix(file, ".html"))
}

// templateFiles reads the files of a directory.
func templateFiles(dir fs.FS) (map[string]string, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, e := range entries {
		name, part, ok := templateFile(e.Name())
		if !ok || e.IsDir() {
			continue
		}
		parts := []string{subjectPart, textPart, htmlPart, textLayoutPart, htmlLayoutPart}
		if name == layoutName {
			parts = []string{textPart, htmlPart}
		}
		if !secretName.MatchString(name) || !slices.Contains(parts, part) {
			return nil, fmt.Errorf("%s is no file of a template: its name is like welcome.subject.txt, welcome.txt, "+
				"welcome.html or layout.html, with lower-case letters, digits, - and _", e.Name())
		}
		if files[e.Name()], err = readTemplate(dir, e.Name()); err != nil {
			return nil, err
		}
	}
	if len(files) > 5*maxTemplates {
		return nil, fmt.Errorf("there are %d files: a directory may have %d templates", len(files), maxTemplates)
	}
	return files, nil
}

// readTemplate reads a file of limited size.
func readTemplate(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxTemplateFile+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxTemplateFile {
		return "", fmt.Errorf("%s has more than %d bytes", name, maxTemplateFile)
	}
	return string(b), nil
}

// compile makes templates of files.
func compile(files map[string]string) (map[string]*mailTemplate, error) {
	all := map[string]*mailTemplate{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name, part, _ := templateFile(file)
		if name == layoutName || all[name] != nil {
			continue
		}
		if part == textLayoutPart || part == htmlLayoutPart {
			if _, text := files[name+"."+textPart]; !text && files[name+"."+htmlPart] == "" {
				return nil, fmt.Errorf("%s: there is no template %s", file, name)
			}
		}
		m, err := compileOne(files, name)
		if err != nil {
			return nil, err
		}
		all[name] = m
	}
	return all, nil
}

// strict has a template fail where it uses a parameter that is missing.
const strict = "missingkey=error"

func compileOne(files map[string]string, name string) (*mailTemplate, error) {
	m := &mailTemplate{}
	subject, text, html := name+"."+subjectPart, name+"."+textPart, name+"."+htmlPart
	source, ok := files[subject]
	if !ok {
		return nil, fmt.Errorf("the template %s has no subject: write %s", name, subject)
	}
	var err error
	if m.subject, err = texttemplate.New(subject).Option(strict).Parse(source); err != nil {
		return nil, err
	}
	if source, ok := files[text]; ok {
		file, around := layoutOf(files, name, textLayoutPart, textPart)
		t := texttemplate.New(file).Option(strict)
		if m.text, err = t.Parse(around); err == nil {
			_, err = t.New("content").Parse(source)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	if source, ok := files[html]; ok {
		file, around := layoutOf(files, name, htmlLayoutPart, htmlPart)
		t := htmltemplate.New(file).Option(strict)
		if m.html, err = t.Parse(around); err == nil {
			_, err = t.New("content").Parse(source)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", html, err)
		}
		// html/template looks at the contexts of a template when it is first executed; what is wrong is
		// said now.
		if err := m.html.Execute(io.Discard, map[string]any{}); err != nil {
			if wrong, ok := errors.AsType[*htmltemplate.Error](err); ok {
				return nil, fmt.Errorf("%s: %w", html, wrong)
			}
		}
	}
	if m.text == nil && m.html == nil {
		return nil, fmt.Errorf("the template %s has neither %s nor %s", name, text, html)
	}
	return m, nil
}

// layoutOf is the layout around a template: its own, or the one around all; without, the template's
// content alone.
func layoutOf(files map[string]string, name, own, common string) (file, source string) {
	for _, file := range []string{name + "." + own, layoutName + "." + common} {
		source, ok := files[file]
		if !ok {
			continue
		}
		if strings.TrimSpace(source) != "" {
			return file, source
		}
		break
	}
	return "no layout", `{{template "content" .}}`
}

package report

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path"
	texttemplate "text/template"
)

//go:embed templates
var builtin embed.FS

// Templates makes HTML of reports.
type Templates struct {
	own     fs.FS
	byKind  map[string]*template.Template
	general *template.Template
}

// OpenTemplates reads the templates of a directory: report.html for all kinds of reports, and
// trial_balance.html, account_ledger.html and journal.html, which come first for theirs. What is
// not there is built in; so is all of it without a directory. A template may use the definition
// "style", and define it anew. A template that cannot be read is an error.
func OpenTemplates(dir string, kinds ...string) (*Templates, error) {
	t := &Templates{byKind: map[string]*template.Template{}}
	if dir != "" {
		info, err := os.Stat(dir)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the directory of templates: %w", err)
		case !info.IsDir():
			return nil, errors.New("the directory of templates is a file")
		}
		t.own = os.DirFS(dir)
	}
	var err error
	if t.general, err = t.parse("report.html", true); err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if t.byKind[kind], err = t.parse(kind+".html", false); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// parse reads a template: the operator's own or, if there must be one, what is built in.
func (t *Templates) parse(name string, must bool) (*template.Template, error) {
	base, err := template.ParseFS(builtin, "templates/style.html")
	if err != nil {
		return nil, err
	}
	if t.own != nil {
		text, err := fs.ReadFile(t.own, name)
		if err == nil {
			parsed, err := base.New(name).Parse(string(text))
			if err != nil {
				return nil, fmt.Errorf("the template %s: %w", name, err)
			}
			return parsed, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the template %s: %w", name, err)
		}
	}
	if !must {
		return nil, nil
	}
	text, err := fs.ReadFile(builtin, path.Join("templates", name))
	if err != nil {
		return nil, err
	}
	return base.New(name).Parse(string(text))
}

// TemplateError returns what is wrong with a template, if that is why Write failed, and nil if the
// output failed.
func TemplateError(err error) error {
	var exec texttemplate.ExecError
	var escape *template.Error
	if errors.As(err, &exec) || errors.As(err, &escape) {
		return err
	}
	return nil
}

// Write writes a report as HTML. It fails when the output does, or the template on this report.
func (t *Templates) Write(w io.Writer, r *Report) error {
	by := t.byKind[r.Kind]
	if by == nil {
		by = t.general
	}
	return by.Execute(w, r)
}

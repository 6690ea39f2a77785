package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

const pageTimeout = 15 * time.Second

// request is a request of a caller who is signed in.
type request struct {
	*http.Request
	// Token is the caller's.
	Token tokens.Token
	now   time.Time
	// filters are those of the page, when its handler has made them.
	filters *filters
}

// org returns the organization that the address asks for in ?org=, or the only one that the token
// reaches; empty: all. One that the token does not reach does not exist for it.
func (r *request) org() (string, error) { return r.reach(r.FormValue("org")) }

// reach returns the organization that a request is about: org, or the token's own when org is
// empty.
func (r *request) reach(org string) (string, error) {
	switch {
	case r.Token.OrgID == nil:
		return org, nil
	case org == "" || org == *r.Token.OrgID:
		return *r.Token.OrgID, nil
	}
	return "", store.NoOrganization(org)
}

// view is what a page shows.
type view struct {
	// Title is the page's heading and, with the program's name, the window's.
	Title string
	// Template is the file of templates/ without ".html".
	Template string
	// Nav is the entry of the menu that the page belongs to: its address below Root.
	Nav string
	// Lead is a sentence below the heading that says what the page is for; empty: none.
	Lead string
	// Trail are the pages above this one, the first first.
	Trail []trail
	// Live has the page's parts read anew every few seconds.
	Live bool
	// Status is the HTTP status; 0: 200.
	Status int
	// To is a page of the console that is shown instead; empty: this one is.
	To string
	// Data is the template's own.
	Data any
}

// trail is a page above another one.
type trail struct{ Name, Address string }

// frame is what the layout is rendered with.
type frame struct {
	view
	Root    string
	Menu    []menuGroup
	Token   *tokens.Token
	Version string
	// Assets changes when a file of static/ does.
	Assets string
	Flash  *flash
	// Problem is why the form was refused that this page was asked from.
	Problem string
	Now     time.Time
	// Address is this page's, with its parameters.
	Address string
	// Org is the organization that the address names; empty: all, or the token's own.
	Org string
	// Orgs are suggested as Org.
	Orgs []string
}

// Can reports whether the caller's token has a scope: buttons are shown to those who may use them.
func (f frame) Can(scope tokens.Scope) bool { return f.Token != nil && f.Token.Allows(scope) }

// Link makes the address of a page below Root, in which the organization that was chosen stays.
func (f frame) Link(path string, pairs ...any) string {
	texts := make([]string, len(pairs))
	for i, p := range pairs {
		texts[i] = asText(p)
	}
	return address(f.Org, path, texts...)
}

//go:embed templates
var templates embed.FS

type pages struct {
	byName map[string]*template.Template
	menu   []menuEntry
}

// parsePages reads every page's template once, each with the layout and the parts that pages share
// (files whose names begin with "shared-").
func parsePages() pages {
	shared := template.Must(template.New("layout").Funcs(functions()).ParseFS(templates, "templates/shared-*.html"))
	p := pages{byName: map[string]*template.Template{}}
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if !strings.HasPrefix(name, "shared-") {
			p.byName[name] = template.Must(template.Must(shared.Clone()).ParseFS(templates, file))
		}
	}
	return p
}

// page adds a page that a caller who is signed in with the scope may see. pattern is that of
// http.ServeMux, with Root.
func (c *console) page(pattern string, scope tokens.Scope,
	handle func(ctx context.Context, r *request) (*view, error),
) {
	c.handle(pattern, func(w http.ResponseWriter, raw *http.Request) {
		r, ok := c.signedIn(w, raw, scope)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(raw.Context(), pageTimeout)
		defer cancel()
		v, err := handle(ctx, r)
		if err != nil {
			c.fail(w, r, err)
			return
		}
		if v.To != "" && refusalOf(ctx) == nil {
			http.Redirect(w, raw, v.To, http.StatusSeeOther)
			return
		}
		c.render(w, r, v)
	})
}

// liveHeader is sent by console.js when it reads a page anew: it wants the content alone.
const liveHeader = "X-Daybook-Live"

// render writes a page. It is made in memory first: an error in a template answers with status 500,
// not with half a page.
func (c *console) render(w http.ResponseWriter, r *request, v *view) {
	f := frame{view: *v, Root: Root, Version: c.Version, Assets: c.assets, Now: c.now(), Address: r.URL.RequestURI()}
	if r.Token.ID != "" {
		f.Token, f.Menu, f.Org = &r.Token, c.menu, r.chosenOrg()
	}
	if x := refusalOf(r.Context()); x != nil {
		x.fill(&f)
	}
	part := "layout"
	if r.Header.Get(liveHeader) != "" {
		part = "main"
	} else {
		f.Flash = takeFlash(w, r.Request)
		f.Orgs = c.suggestedOrgs(r)
	}
	t := c.pages.byName[v.Template]
	if t == nil {
		c.broken(w, r.Request, fmt.Errorf("there is no template %q", v.Template))
		return
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, part, f); err != nil {
		c.broken(w, r.Request, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(cmp.Or(f.Status, http.StatusOK))
	_, _ = b.WriteTo(w)
}

func (c *console) broken(w http.ResponseWriter, r *http.Request, err error) {
	c.log.LogAttrs(r.Context(), slog.LevelError, "a page of the console could not be rendered",
		slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	http.Error(w, "This page could not be rendered. The server's log says why.", http.StatusInternalServerError)
}

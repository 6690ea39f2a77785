package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// A page keeps its form when what was filled in is refused: the filters of a list (filter), and the
// form of an action (refuse).

// filter gives the page its filters, with the values of the address. It is called before they are
// read: where they cannot be, or are refused, the error is shown below the form.
func (r *request) filter(f filters) filters {
	f.Fields = fields(r, f.Fields...)
	r.filters = &f
	return f
}

// failedFilter is the page of filters that were refused; nil: the request has none, or they are not
// to blame.
func (c *console) failedFilter(r *request, class *failure.Class) *view {
	if r.filters == nil || class.Status >= http.StatusInternalServerError {
		return nil
	}
	v := &view{Title: class.Title, Nav: strings.TrimPrefix(r.filters.Action, Root)}
	for _, entry := range c.pages.menu {
		if entry.Path == v.Nav {
			v.Title = entry.Name
		}
	}
	return v
}

// refusal is why an action was refused, and the form that asked for it.
type refusal struct {
	err    error
	class  *failure.Class
	detail string
	action string
	form   url.Values
}

type refusalKey struct{}

func refusalOf(ctx context.Context) *refusal {
	f, _ := ctx.Value(refusalKey{}).(*refusal)
	return f
}

// refuse answers an action that was refused with the page that its form is on. Where there is none,
// it is the page of the error.
func (c *console) refuse(w http.ResponseWriter, r *request, err error) {
	class := cmp.Or(store.Failure(err), failure.Internal)
	next := r.PostFormValue("next")
	to, bad := url.Parse(localPath(next))
	if bad != nil || next != localPath(next) || class.Status >= http.StatusInternalServerError || class == failure.Forbidden {
		c.fail(w, r, err)
		return
	}
	f := &refusal{err: err, class: class, detail: detailOf(class, err), action: r.URL.Path, form: r.PostForm}
	again := r.Clone(context.WithValue(r.Context(), refusalKey{}, f))
	again.Method, again.URL, again.RequestURI, again.Body, again.ContentLength = http.MethodGet, to, next, http.NoBody, 0
	again.Form, again.PostForm, again.MultipartForm, again.Pattern = nil, nil, nil, ""
	again.Header.Del("Content-Type")
	c.mux.ServeHTTP(w, again)
}

// fill fills in the form that was refused among those of a page, which says why above all and is not
// read anew.
func (f *refusal) fill(page *frame) {
	if page.Template == "error" {
		return
	}
	page.Live, page.Status, page.Problem = false, f.class.Status, f.detail
	data, _ := page.Data.(map[string]any)
	for name, value := range data {
		b, is := value.(button)
		if !is || b.Action != f.action || !slices.ContainsFunc(b.Fields, func(i field) bool { return f.form.Has(i.Name) }) ||
			slices.ContainsFunc(b.Hidden, func(h field) bool { return f.form.Get(h.Name) != h.Value }) {
			continue
		}
		b.Fields, b.Again = slices.Clone(b.Fields), true
		for i := range b.Fields {
			b.Fields[i].Value = f.form.Get(b.Fields[i].Name)
		}
		data[name] = b
		return
	}
}

package console

import (
	"net/url"
	"strings"
)

// address makes the address of a page: path is below Root, org is kept in it, and of the pairs of
// names and values those with an empty value are left out.
func address(org, path string, pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if org != "" && !q.Has("org") {
		q.Set("org", org)
	}
	return withQuery(Root+path, q)
}

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// joinPath escapes the parts of a path below Root and joins them with slashes.
func joinPath(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// chosenOrg is the organization that the address names, for a token that reaches several; empty:
// none.
func (r *request) chosenOrg() string {
	if r.Token.OrgID != nil {
		return ""
	}
	return r.FormValue("org")
}

// link makes the address of a page below Root, in which the organization that was chosen stays.
func (r *request) link(path string, pairs ...string) string {
	return address(r.chosenOrg(), path, pairs...)
}

// here is this page's address with other values for some of its parameters; an empty value drops
// one.
func (r *request) here(pairs ...string) string {
	q := r.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return withQuery(r.URL.EscapedPath(), q)
}

// localPath keeps a redirect on these pages.
func localPath(next string) string {
	if strings.HasPrefix(next, Root) && !strings.ContainsAny(next, "\\\r\n") {
		return next
	}
	return Root
}

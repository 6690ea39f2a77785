package console

import (
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// functions are what templates may call.
func functions() template.FuncMap {
	return template.FuncMap{
		"number":    number,
		"span":      phrase.Duration,
		"iso":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"exact":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 MST") },
		"ago":       ago,
		"at":        at,
		"count":     func(s store.QueueStatus, state models.JobState) int64 { return s.Counts[state] },
		"query":     query,
		"path":      joinPath,
		"tone":      tone,
		"text":      asText,
		"plural":    plural,
		"dict":      dict,
		"list":      func(items ...any) []any { return items },
		"short":     short,
		"clip":      clip,
		"add":       add,
		"money":     money,
		"int64":     func(n int) int64 { return int64(n) },
		"codeWords": codeWords,
		"address":   address,

		"rate":        rateText,
		"previewmost": func() int { return books.DefaultPreviewDocuments },
	}
}

// moment is a time as a page sees it; the template "time" shows it.
type moment struct{ Now, Time time.Time }

// at makes a moment of a time or a pointer to one; nil when there is none, which the template
// "time" shows as a dash.
func at(now time.Time, t any) *moment {
	switch v := t.(type) {
	case time.Time:
		if !v.IsZero() {
			return &moment{now, v}
		}
	case *time.Time:
		if v != nil && !v.IsZero() {
			return &moment{now, *v}
		}
	}
	return nil
}

// asText is what a string, or a value whose kind is one, says; nil and nil pointers say nothing.
func asText(v any) string {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		r = r.Elem()
	}
	if !r.IsValid() {
		return ""
	}
	return fmt.Sprint(r.Interface())
}

// dict makes a map of names and values, for a template that wants several.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[asText(pairs[i])] = pairs[i+1]
	}
	return m
}

// plural counts things: "1 job", "2 jobs".
func plural(n any, one, many string) string {
	text := number(n)
	if text == "1" {
		return "1 " + one
	}
	return text + " " + many
}

// number writes an integer with thin spaces between groups of three digits.
func number(n any) string {
	return strings.Replace(phrase.Grouped(asText(n), "\u202f"), "-", "−", 1)
}

// ago says when t was, or will be, as seen from now. It is as exact as a person needs it, and
// console.js says the same.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	var text string
	switch a := d.Abs(); {
	case a < time.Second:
		return "now"
	case a < time.Minute:
		text = strconv.Itoa(int(a.Seconds())) + " s"
	case a < time.Hour:
		text = strconv.Itoa(int(a.Minutes())) + " min"
	default:
		text = phrase.Duration(a)
	}
	if d > 0 {
		return text + " ago"
	}
	return "in " + text
}

// query makes the part of an address after the question mark, of names and values; pairs whose
// value is empty are left out.
func query(pairs ...string) template.URL {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return template.URL(q.Encode()) //nolint:gosec // url.Values escapes every name and value
}

package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	htmltemplate "html/template"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	texttemplate "text/template"
	"unicode/utf8"
)

// MailTemplates are named templates of mail: a subject, and a text, HTML or both, which a payload
// fills with parameters. They are read once; make them by OpenMailTemplates. They are safe for
// concurrent use.
type MailTemplates struct {
	all map[string]*mailTemplate
	// own are those of the directory; the others come with Daybook.
	own map[string]bool
}

// Mail is what a template made.
type Mail struct {
	// Subject is on one line.
	Subject string `json:"subject"`
	// Text and HTML are the two forms of the message; one of them may be empty.
	Text string `json:"text,omitempty"`
	HTML string `json:"html,omitempty"`
}

// MailTemplate describes a template.
type MailTemplate struct {
	Name string `json:"name"`
	// Text and HTML say which forms it makes.
	Text bool `json:"text"`
	HTML bool `json:"html"`
	// BuiltIn says that it comes with Daybook and the directory has none of its name.
	BuiltIn bool `json:"built_in"`
}

// mailTemplate is one of them. A form that it does not have is nil.
type mailTemplate struct {
	subject, text *texttemplate.Template
	html          *htmltemplate.Template
}

// Limits of templates and of what they make.
const (
	maxTemplateFile = 256 << 10
	maxTemplates    = 500
	maxSubject      = 250
	maxMail         = 1 << 20
)

// List describes all templates, in the order of their names.
func (t *MailTemplates) List() []MailTemplate {
	var all []MailTemplate
	for _, name := range slices.Sorted(maps.Keys(t.all)) {
		m := t.all[name]
		all = append(all, MailTemplate{Name: name, Text: m.text != nil, HTML: m.html != nil, BuiltIn: !t.own[name]})
	}
	return all
}

// Render fills a template with parameters. A parameter that the template uses and params does not
// have is an error that names it, and so are an unknown template and a result that is too large:
// 250 characters of the subject, 1 MiB of each form. In HTML, parameters are escaped for the place
// where they stand. The error's code is PAYLOAD_INVALID.
func (t *MailTemplates) Render(name string, params map[string]any) (Mail, error) {
	m := t.all[name]
	if m == nil {
		return Mail{}, invalid("there is no template %s: there are %s", strconv.Quote(clip(name)),
			strings.Join(slices.Sorted(maps.Keys(t.all)), ", "))
	}
	r := &rendering{name: name, params: maps.Clone(params)}
	if r.params == nil {
		r.params = map[string]any{}
	}
	var mail Mail
	if m.subject != nil {
		mail.Subject = strings.TrimSpace(r.part("subject", m.subject))
	}
	if m.text != nil {
		mail.Text = r.part("text", m.text)
	}
	if m.html != nil {
		mail.HTML = r.part("HTML", m.html)
	}
	switch {
	case len(r.missing) > 0:
		return Mail{}, invalid("the template %s needs the parameters that templateParams does not have: %s", name,
			strings.Join(r.missing, ", "))
	case r.err != nil:
		return Mail{}, r.err
	case hasControl(mail.Subject):
		return Mail{}, invalid("the template %s makes a subject with line breaks or control characters", name)
	case utf8.RuneCountInString(mail.Subject) > maxSubject:
		return Mail{}, invalid("the template %s makes a subject of more than %d characters", name, maxSubject)
	}
	return mail, nil
}

// CheckPayload tries the template of a payload of the type email or notification before its job is
// enqueued; a payload of another type, or without template, is not looked at. The error says what
// Render says. It knows nothing of what the worker's directory has and t does not.
func (t *MailTemplates) CheckPayload(jobType string, raw json.RawMessage) error {
	var mail *Email
	switch jobType {
	case Email{}.JobType():
		var p Email
		if json.Unmarshal(raw, &p) == nil {
			mail = &p
		}
	case Notification{}.JobType():
		var p Notification
		if json.Unmarshal(raw, &p) == nil && p.Email != nil {
			mail = p.email()
		}
	}
	if mail == nil || mail.Template == "" {
		return nil
	}
	_, err := t.Render(mail.Template, mail.TemplateParams)
	return err
}

// rendering is a template that is being filled.
type rendering struct {
	name    string
	params  map[string]any
	missing []string
	err     error
}

// missingKey is how the template packages name a parameter that is not there.
var missingKey = regexp.MustCompile(`map has no entry for key ("(?:[^"\\]|\\.)*")`)

// maxMissing is how many missing parameters an error names.
const maxMissing = 20

// part fills one part. To name all missing parameters, it gives each one that is missing an empty
// text and tries again.
func (r *rendering) part(what string, t interface{ Execute(io.Writer, any) error }) string {
	for r.err == nil {
		b := &boundedText{left: maxMail}
		err := t.Execute(b, r.params)
		if err == nil {
			return b.String()
		}
		name, isMissing := "", false
		if found := missingKey.FindStringSubmatch(err.Error()); found != nil {
			name, err = strconv.Unquote(found[1])
			isMissing = err == nil
		}
		_, known := r.params[name]
		switch {
		case errors.Is(err, errTooLong):
			r.err = invalid("the template %s makes a %s of more than %d bytes", r.name, what, maxMail)
		case !isMissing || known || len(r.missing) >= maxMissing:
			r.err = invalid("the template %s cannot make its %s: %s", r.name, what, clip(err.Error()))
		default:
			r.missing = append(r.missing, name)
			r.params[name] = ""
		}
	}
	return ""
}

// boundedText is a text of limited length.
type boundedText struct {
	bytes.Buffer
	left int
}

// errTooLong: a template made more than is allowed.
var errTooLong = errors.New("too long")

// Write implements io.Writer.
func (b *boundedText) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLong
	}
	return b.Buffer.Write(p)
}

package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// A page whose filter cannot be read, or is refused, keeps its form as it was filled in, and says
// what is wrong with it.
func TestAWrongFilterKeepsItsForm(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	posted(s)
	s.done("/console/rates/own", url.Values{"org": {"acme"}, "currency": {"EUR"}})
	for _, c := range []struct {
		path   string
		status int
		sees   []string
	}{
		{"statements?kind=income&period=2026-04&compare=previous&by=cost_centre", 422, []string{
			`value="2026-04"`, `value="cost_centre"`, `value="previous" selected`, "<h1>Statements</h1>",
		}},
		{"statements?kind=income&compare=year", 422, []string{`name="compare"`}},
		{"statements?where=sales", 422, []string{`value="sales"`}},
		{"statements?period=x", 422, []string{`value="x"`}},
		{"statements?kind=cash&where=cost_centre%3Dsales", 422, []string{`value="cost_centre=sales"`, "neither compared nor split"}},
		{"statements?kind=cash&by=cost_centre", 422, []string{`value="cost_centre"`, "neither compared nor split"}},
		{"vat?by=cost_centre", 422, []string{`name="period"`, "neither compared nor split"}},
		{"vat?period=2026-13", 422, []string{`value="2026-13"`}},
		{"trial-balance?period=2026-13", 422, []string{`value="2026-13"`}},
		{"accounts?account=1200&period=2026-13", 422, []string{`value="2026-13"`}},
		{"entries?from=2026-02-01&to=2026-01-01", 422, []string{`value="2026-02-01"`}},
		{"documents?from=2026-02-01&to=2026-01-01", 422, []string{`value="2026-01-01"`}},
		{"documents?import=x&state=posted", 422, []string{`value="x"`, `value="posted" selected`}},
		{"open-items?on=x", 422, []string{`name="on"`}},
		{"rates?until=x&currency=USD", 422, []string{`value="USD"`, `name="until"`}},
		{"jobs?since=x&type=mail", 422, []string{`value="x"`, `value="mail"`}},
		{"accounting?since=x&code=C", 422, []string{`value="x"`, `value="C"`}},
		{"actions?since=x&actor=me", 422, []string{`value="x"`, `value="me"`}},
	} {
		status, body := s.get("/console/" + c.path + "&org=acme")
		assert.Equal(t, c.status, status, c.path)
		sees(t, body, append(c.sees, `<form class="filters"`, `role="alert"`)...)
	}
	s.signIn("", tokens.ScopeRead)
	status, body := s.get("/console/tasks?since=x&type=mail")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	sees(t, body, `<form class="filters"`, `value="x"`, `value="mail"`)
}

// The files of a statement, and its JSON, refuse the filters that its page refuses.
func TestFilesRefuseWhatTheirPageRefuses(t *testing.T) {
	t.Parallel()
	s := books(t)
	for _, kind := range []string{"cash", "vat"} {
		for _, format := range []string{"csv", "json", "pdf"} {
			status, body := s.get("/console/statements/file?org=acme&by=cost_centre&kind=" + kind + "&format=" + format)
			assert.Equal(t, http.StatusUnprocessableEntity, status, "%s %s", kind, format)
			assert.Contains(t, body, "neither compared nor split")
		}
	}
	assert.Contains(t, s.see("/console/statements?org=acme&kind=vat&period=2026-03"), "<h1>VAT</h1>", "and no balance sheet under its name")
}

// A form that is refused is shown again on its page, as it was filled in, with the reason beside it.
func TestARefusedFormIsShownAgain(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	s.done("/console/rates/own", url.Values{"currency": {"EUR"}})
	for _, c := range []struct {
		action, next string
		form         url.Values
		sees         []string
	}{
		{"statements/close-year", "statements?org=acme&kind=income", url.Values{"year": {"twenty"}, "account": {"2900"}}, []string{
			`value="twenty"`, `value="2900"`, "the year is no number", "Income statement", `<details class="confirm" open`,
		}},
		{"periods/add", "periods?org=acme", url.Values{"span": {"2026-13"}}, []string{`value="2026-13"`, "Periods"}},
		{"rates/set", "rates?org=acme", url.Values{"currency": {"USD"}, "valid_on": {"2026-02-28"}, "rate": {"0,92,48"}}, []string{
			`value="0,92,48"`, `value="2026-02-28"`, "Rates",
		}},
		// Its page has no such form: the reason is above the page.
		{"journal/delete", "journal?org=acme", url.Values{"document": {"none"}}, []string{`role="alert"`, "Post"}},
	} {
		c.form.Set("org", "acme")
		c.form.Set("next", "/console/"+c.next)
		status, body := s.post("/console/"+c.action, c.form)
		assert.GreaterOrEqual(t, status, 400, c.action)
		assert.Less(t, status, 500, c.action)
		sees(t, body, append(c.sees, `role="alert"`)...)
	}
	// A page that cannot be shown either says what was wrong with the form.
	status, body := s.post("/console/periods/add", url.Values{"org": {"acme"}, "span": {"x"}, "next": {"/console/period?org=acme&from=x"}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.NotContains(t, body, "from:")
}

package console_test

import (
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

const saleRule = `doc.type == "invoice" && doc.direction == "out"`

// rulesWith is the sample rule set with a part of it replaced.
func rulesWith(t *testing.T, old, with string) string {
	t.Helper()
	source := string(sample.Rules())
	require.Contains(t, source, old)
	return strings.ReplaceAll(source, old, with)
}

// asBrowser writes a text as a browser sends that of a textarea.
func asBrowser(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// preview sends a source to the preview and returns the page.
func (s *site) preview(source string, more url.Values) string {
	s.t.Helper()
	form := url.Values{"org": {"acme"}, "source": {asBrowser(source)}}
	maps.Copy(form, more)
	status, body := s.post("/console/rules/preview", form)
	require.Equal(s.t, http.StatusOK, status, body)
	return body
}

// sees asserts that a page has each text.
func sees(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%q is missing in: %s", text, content(body))
		}
	}
}

// content is a page without its frame and markup.
func content(body string) string {
	_, body, _ = strings.Cut(body, `<div id="content"`)
	return html.UnescapeString(regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, " "), " "))
}

// TestMendTheRuleAndSeeItComeBack is the way of an operator on call: a document failed for want of
// a rule, the rule is mended, and the job comes back.
func TestMendTheRuleAndSeeItComeBack(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	d := fixture.Invoice("acme", "tip-1", 1000)
	d.Type = "tip"
	s.write(d)
	s.work()

	body := s.see("/console/documents?org=acme&document=tip-1")
	sees(t, body, "Not posted:", "NO_MATCHING_RULE", "no rule matches the document (type=&#34;tip&#34;")
	body = s.follow(body, "Mend the rules")
	sees(t, body, "Change the rules", "ruleset: sample", "from version 1")

	mended := rulesWith(t, saleRule, `(doc.type == "invoice" || doc.type == "tip") && doc.direction == "out"`)
	body = s.preview(mended, nil)
	sees(t, content(body), "1 failed job comes back", "1 of 1 failed document that was tried would be posted",
		"Would be posted", "tip-1", "Nothing is posted yet")
	sees(t, body, ">added<", "11.90", "Store and activate")
	assert.Equal(t, models.JobFailed, fixture.Job(t, s.Pool, "acme", "tip-1").State, "a preview changes nothing")

	base := regexp.MustCompile(`name="base" value="(\d+)"`).FindStringSubmatch(body)
	require.Len(t, base, 2)
	status, body := s.post("/console/rules/apply",
		url.Values{"org": {"acme"}, "base": {base[1]}, "source": {asBrowser(mended)}})
	require.Equal(t, http.StatusOK, status)
	sees(t, body, "Version 2 is active. 1 failed job is pending again.")
	job := fixture.Job(t, s.Pool, "acme", "tip-1")
	assert.Equal(t, models.JobPending, job.State)
	sees(t, s.see("/console/documents?org=acme&document=tip-1"), "pending")
	var stored string
	require.NoError(t, s.Pool.QueryRow(t.Context(),
		`SELECT source FROM daybook.rule_sets WHERE org_id = 'acme' AND version = 2`).Scan(&stored))
	assert.Equal(t, mended, stored, "as it was pasted, also where a browser sends other ends of lines")

	s.work()
	sees(t, s.see("/console/documents?org=acme&document=tip-1"), "rule set version 2", "live")
}

func TestVersionsOfRules(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	source := rulesWith(t, "ruleset: sample", "ruleset: second")
	status, body := s.post("/console/rules/apply",
		url.Values{"org": {"acme"}, "base": {"1"}, "store": {"only"}, "source": {source}})
	require.Equal(t, http.StatusOK, status)
	sees(t, body, "Version 2 is stored. It is not active.", "second")
	assert.Less(t, strings.Index(body, ">2<"), strings.Index(body, ">1<"), "the newest first")

	before, _, _ := strings.Cut(source, "- id: sale\n")
	sees(t, s.see("/console/rules/2?org=acme&rule=sale"), "Rule set version 2", "ruleset: second",
		fmt.Sprintf(`Rule <code>sale</code> begins in <a href="#L%d">`, strings.Count(before, "\n")+1), "stored")
	body = s.see("/console/rules/2/preview?org=acme")
	sees(t, body, "Activate version 2")
	status, body = s.post("/console/rules/activate", url.Values{"org": {"acme"}, "base": {"1"}, "version": {"2"}})
	require.Equal(t, http.StatusOK, status)
	sees(t, body, "Version 2 is active.")
	_, body = s.post("/console/rules/activate", url.Values{"org": {"acme"}, "base": {"2"}, "version": {"2"}})
	sees(t, body, "Nothing changed")
	sees(t, s.see("/console/rules/edit?org=acme&from=1"), "ruleset: sample")
	for _, path := range []string{"/console/rules/7", "/console/rules/7/preview", "/console/rules/edit?from=7"} {
		status, body = s.get(path)
		assert.Equal(t, http.StatusNotFound, status, path)
		sees(t, body, "NO_RULE_SET")
	}
	status, _ = s.get("/console/rules/x")
	assert.Equal(t, http.StatusNotFound, status)
}

func TestAPreviewSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	body := s.preview(rulesWith(t, "amount: doc.prepaid", "amount: doc.prepayd"), nil)
	sees(t, body, "These rules cannot be used", "prepayd", `href="#L`, `class="line wrong"`)
	assert.NotContains(t, body, "Store and activate")

	status, body := s.post("/console/rules/apply", url.Values{"org": {"acme"}, "base": {"1"}, "source": {"rules: ["}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	sees(t, body, "INVALID_RULES")
}

func TestAPreviewSaysWhatWouldBeDifferent(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeRead)
	s.write(fixture.Invoice("acme", "inv-1", 1000), fixture.Invoice("acme", "inv-2", 1000))
	s.work()
	body := s.preview(rulesWith(t, `{when: true, account: "4400"}`, `{when: true, account: "4125"}`), nil)
	sees(t, content(body), "2 of 2 recent documents would be posted differently, and 0 would fail", "inv-1", "inv-2")
	sees(t, body, ">changed<", ">4125<", ">4400<")
	sees(t, body, "needs the scope <code>operate</code>")
	assert.NotContains(t, body, "/console/rules/apply", "who may only look sees no button")

	body = s.preview(rulesWith(t, saleRule, "false && "+saleRule), nil)
	sees(t, content(body), "0 of 2 recent documents would be posted differently, and 2 would fail", "NO_MATCHING_RULE")
	body = s.preview(string(sample.Rules()), nil)
	sees(t, content(body), "Nothing would change for 2 of 2")
	body = s.preview(rulesWith(t, `{when: true, account: "4400"}`, `{when: true, account: "9999"}`), nil)
	sees(t, content(body), "The chart lacks 9999", "UNKNOWN_ACCOUNT")
}

func TestAPreviewRunsTestCases(t *testing.T) {
	t.Parallel()
	s := books(t)
	const cases = `
cases:
  - title: a sale
    document: {type: invoice, direction: out, currency: EUR, issue_date: "2026-03-14", content: {lines: [{kind: item, net: 1000, rate: 19}], payable: 1000}}
    expect: {entries: [{account: "1200", debit: 1000}, {account: "4400", credit: 1000}]}
  - title: a sale of something else
    document: {type: invoice, direction: out, currency: EUR, issue_date: "2026-03-14", content: {lines: [{kind: item, net: 500, rate: 19}], payable: 500}}
    expect: {entries: [{account: "1200", debit: 1000}, {account: "4400", credit: 1000}]}
`
	body := s.preview(string(sample.Rules()), url.Values{"cases": {asBrowser(cases)}})
	sees(t, content(body), "ok a sale ", "fails a sale of something else", "+ 1200 debit 5.00 EUR")
	body = s.preview(string(sample.Rules()), url.Values{"cases": {"cases: 3"}})
	sees(t, body, "The test cases cannot be read")
}

func TestAChangeOfRulesThatOvertakesAnotherIsRefused(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	second, third := rulesWith(t, "ruleset: sample", "ruleset: second"), rulesWith(t, "ruleset: sample", "ruleset: third")
	_, body := s.post("/console/rules/apply", url.Values{"org": {"acme"}, "base": {"1"}, "source": {second}})
	sees(t, body, "Version 2 is active")
	status, body := s.post("/console/rules/apply", url.Values{"org": {"acme"}, "base": {"1"}, "source": {third}})
	assert.Equal(t, http.StatusConflict, status)
	sees(t, body, "RULES_CHANGED", "preview the change again")
	status, _ = s.post("/console/rules/apply", url.Values{"org": {"acme"}, "source": {third}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.Equal(t, 2, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.rule_sets`))
}

func TestRulesNeedTheirScopesAndOrganization(t *testing.T) {
	t.Parallel()
	s := books(t)
	apply := url.Values{
		"org": {"acme"}, "base": {"1"}, "version": {"1"},
		"source": {rulesWith(t, "ruleset: sample", "ruleset: second")},
	}
	for _, path := range []string{"/console/rules/apply", "/console/rules/activate"} {
		status, body := s.post(path, apply)
		assert.Equal(t, http.StatusForbidden, status, path)
		sees(t, body, "FORBIDDEN")
	}
	fixture.Organization(t, s.Pool, "other")
	s.signIn("other", tokens.ScopeRead, tokens.ScopeOperate)
	for _, path := range []string{"/console/rules/apply", "/console/rules/activate", "/console/rules/preview"} {
		status, body := s.post(path, apply)
		assert.Equal(t, http.StatusNotFound, status, path)
		sees(t, body, "ORGANIZATION_NOT_FOUND")
	}
	assert.Equal(t, 2, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.rule_sets`))
}

func TestHostileRulesAreShownAsText(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	quoted := `"</textarea>` + strings.ReplaceAll(markup, `"`, `\"`) + `"`
	source := rulesWith(t, "ruleset: sample", "# </textarea>"+markup+"\nruleset: hostile")
	for _, body := range []string{
		s.preview(source, url.Values{"from": {markup}, "cases": {"</textarea>" + markup}}),
		s.preview("</textarea>"+markup, nil),
		s.preview(rulesWith(t, `id: sale`+"\n", "id: "+quoted+"\n"), nil),
	} {
		assert.NotContains(t, body, markup)
		assert.NotContains(t, body, "</textarea><img")
	}
	_, body := s.post("/console/rules/apply", url.Values{"org": {"acme"}, "base": {"1"}, "source": {source}})
	sees(t, body, "Version 2 is active")
	s.exec(`UPDATE daybook.rule_sets SET name = $1`, markup)
	for _, path := range []string{
		"/console/rules?org=acme", "/console/rules/2?org=acme&rule=" + url.QueryEscape(markup),
		"/console/rules/edit?org=acme&from=2",
	} {
		body := s.see(path)
		assert.NotContains(t, body, markup, path)
		assert.NotContains(t, body, "</textarea><img", path)
	}
}

func TestChangesOfTheBooksAreInTheLogOfActions(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	_, _ = s.post("/console/rules/apply",
		url.Values{"org": {"acme"}, "base": {"1"}, "source": {rulesWith(t, "ruleset: sample", "ruleset: second")}})
	_, _ = s.post("/console/rules/activate", url.Values{"org": {"acme"}, "base": {"7"}, "version": {"1"}})
	s.done("/console/periods/add", url.Values{"span": {"2026-03"}})
	s.done("/console/periods/close", url.Values{"from": {"2026-03-01"}})
	var log string
	require.NoError(t, s.Pool.QueryRow(t.Context(), `
SELECT string_agg(concat_ws(' ', via, action, org_id, NULLIF(subject, ''), outcome, NULLIF(code, ''), actor, details ->> 'version'), E'\n' ORDER BY id) FROM daybook.actions`).Scan(&log))
	assert.Equal(t, strings.Join([]string{
		"console rules.apply acme done test 2",
		"console rules.activate acme refused RULES_CHANGED test",
		"console periods.add acme 2026-03 done test",
		"console periods.close acme 2026-03-01 done test",
	}, "\n"), log)
}

package console

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// versionsShown is how many versions of an organization's rules are listed, the newest first.
const versionsShown = 200

var rulesPage = view{
	Title: "Rules", Template: "rules", Nav: "rules",
	Lead: "What documents are posted as: each change is a version, and one version is active.",
}

// rules adds the versions of an organization's rules, their sources, and the preview of a change
// with what applies it.
func (c *console) rules() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Rules", Path: "rules"})
	c.ledgerPage("GET "+Root+"rules", rulesPage, c.ruleSetList)
	c.ledgerPage("GET "+Root+"rules/{version}", rulesPage, c.ruleSetPage)
	c.ledgerPage("GET "+Root+"rules/{version}/preview", rulesPage, c.previewVersion)
	c.ledgerPage("GET "+Root+"rules/edit", rulesPage, c.editRules)
	// It is a POST because a source may be long; nothing is changed by it.
	c.ledgerPage("POST "+Root+"rules/preview", rulesPage, c.previewSource)
	c.action(Root+"rules/apply", tokens.ScopeOperate, "rules.apply", c.applyRules)
	c.action(Root+"rules/activate", tokens.ScopeOperate, "rules.activate", c.activateRules)
}

func (c *console) ruleSetList(ctx context.Context, r *request, org string) (*view, error) {
	sets, err := books.RuleSets(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	failures, err := ledgerdb.CountFailures(ctx, c.Pool, org, ledgerdb.CodesOfRules())
	if err != nil {
		return nil, err
	}
	return &view{Data: map[string]any{
		"Org": org, "Sets": sets[:min(len(sets), versionsShown)], "Total": len(sets), "Failures": failures,
		"Most": int64(ledgerdb.MaxFailures),
	}}, nil
}

// sourceLine is a line of a rule set's source.
type sourceLine struct {
	Number int
	Text   string
	// Mark says that the line is what the page is about: one that is wrong, or that begins a rule.
	Mark bool
}

// numbered splits a source into its lines, and marks some of them.
func numbered(source string, marked ...int) []sourceLine {
	texts := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	lines := make([]sourceLine, len(texts))
	for i, text := range texts {
		lines[i] = sourceLine{i + 1, strings.TrimSuffix(text, "\r"), slices.Contains(marked, i+1)}
	}
	return lines
}

// lineOfRule is the number of the line that names a rule, or 0.
func lineOfRule(source, rule string) int {
	if rule == "" {
		return 0
	}
	names := regexp.MustCompile(`^\s*-\s*\{?\s*id:\s*["']?` + regexp.QuoteMeta(rule) + `["']?\s*(?:[,#}].*)?$`)
	for i, text := range strings.Split(source, "\n") {
		if names.MatchString(strings.TrimSuffix(text, "\r")) {
			return i + 1
		}
	}
	return 0
}

// versionOf reads the version in the address, which must be stored.
func (c *console) versionOf(ctx context.Context, r *request, org string) (models.RuleSet, error) {
	version, err := strconv.ParseInt(r.PathValue("version"), 10, 64)
	if err != nil || version < 1 {
		return models.RuleSet{}, errNoPage
	}
	return books.RuleSet(ctx, c.Pool, org, version)
}

func (c *console) ruleSetPage(ctx context.Context, r *request, org string) (*view, error) {
	set, err := c.versionOf(ctx, r, org)
	if err != nil {
		return nil, err
	}
	o, err := c.Listing.Organization(ctx, org)
	if err != nil {
		return nil, err
	}
	data := map[string]any{"Org": org, "Set": set, "Active": o.ActiveRuleSet != nil && *o.ActiveRuleSet == set.Version}
	marked := []int{lineOfRule(set.Source, r.FormValue("rule"))}
	rules, err := posting.Compile([]byte(set.Source))
	if wrong, ok := errors.AsType[*posting.CompileError](err); ok {
		data["Problems"] = wrong.Problems
		marked = linesOf(wrong.Problems)
	} else {
		accounts := make([]entryLine, 0, len(rules.Accounts()))
		for _, code := range rules.Accounts() {
			accounts = append(accounts, entryLine{Account: code})
		}
		if err := c.nameAccounts(ctx, org, accounts); err != nil {
			return nil, err
		}
		data["Accounts"] = accounts
		if data["Missing"], err = books.MissingAccounts(ctx, c.Pool, org, rules); err != nil {
			return nil, err
		}
	}
	data["Source"], data["Rule"], data["RuleLine"] = numbered(set.Source, marked...), r.FormValue("rule"), marked[0]
	return &view{
		Title: "Rule set version " + strconv.FormatInt(set.Version, 10), Lead: set.Name, Template: "rules-version",
		Data:  data,
		Trail: []trail{{"Rules", r.link("rules")}},
	}, nil
}

// linesOf are the lines that problems stand in; 0 where none does.
func linesOf(problems []posting.Problem) []int {
	lines := []int{0}
	for i, p := range problems {
		if i == 0 {
			lines[0] = p.Line
		}
		lines = append(lines, p.Line)
	}
	return lines
}

// editRules shows the form for a new version: the source of the version that the address names, or
// of the active one, or the sample's.
func (c *console) editRules(ctx context.Context, r *request, org string) (*view, error) {
	o, err := c.Listing.Organization(ctx, org)
	if err != nil {
		return nil, err
	}
	d := previewView{Org: org, Base: versionNumber(o.ActiveRuleSet)}
	version := d.Base
	if from := r.FormValue("from"); from != "" {
		if version, err = strconv.ParseInt(from, 10, 64); err != nil {
			return nil, wrongParameter("from is %q: want the number of a version", from)
		}
	}
	if version == 0 {
		d.Source, d.From = string(sample.Rules()), "the sample rule set"
	} else {
		set, err := books.RuleSet(ctx, c.Pool, org, version)
		if err != nil {
			return nil, err
		}
		d.Source, d.From = set.Source, "version "+strconv.FormatInt(version, 10)
	}
	return &view{Title: "Change the rules", Template: "rules-edit", Data: d, Trail: []trail{{"Rules", r.link("rules")}}},
		nil
}

// versionNumber is a version; 0: none.
func versionNumber(version *int64) int64 {
	if version == nil {
		return 0
	}
	return *version
}

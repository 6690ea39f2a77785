package console

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// accountsEdit adds the pages on which the chart is changed, and what they do.
func (c *console) accountsEdit() {
	c.ledgerPage("GET "+Root+"accounts/edit", accountsPage, c.editAccount)
	// It is a POST because a chart may be long; nothing is changed by it.
	c.ledgerPage("POST "+Root+"accounts/check", accountsPage, c.checkAccounts)
	c.action(Root+"accounts/put", tokens.ScopeOperate, "accounts.import", c.putAccounts)
}

// accountOptions are the choices of an account's type and role.
func accountOptions() (types, roles []option) {
	for _, t := range []models.AccountType{
		models.AccountAsset, models.AccountLiability, models.AccountEquity, models.AccountIncome, models.AccountExpense,
	} {
		types = append(types, option{string(t), ""})
	}
	roles = append(roles, option{models.NoRoleOrSection, "none"})
	for _, role := range models.AccountRoles {
		roles = append(roles, option{string(role), ""})
	}
	return types, roles
}

// editAccount shows the form of an account, which is new unless the address names it.
func (c *console) editAccount(ctx context.Context, r *request, org string) (*view, error) {
	accounts, err := books.Accounts(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	var a models.Account
	title := "Add an account"
	if code := r.FormValue("account"); code != "" {
		if a, err = accountOf(accounts, org, code); err != nil {
			return nil, err
		}
		title = "Change account " + code
	}
	var sections []string
	for _, one := range accounts {
		if one.Section != "" && !slices.Contains(sections, one.Section) {
			sections = append(sections, one.Section)
		}
	}
	types, roles := accountOptions()
	role := string(a.Role)
	if role == "" {
		role = models.NoRoleOrSection
	}
	return &view{
		Title: title, Template: "accounts-edit", Trail: []trail{{"Accounts", r.link("accounts")}},
		Data: map[string]any{
			"Org": org, "Account": a, "Known": a.Code != "",
			"Fields": []field{
				{Name: "name", Label: "Name", Value: a.Name},
				{Name: "type", Label: "Type", Value: string(a.Type), Options: types},
				{Name: "role", Label: "Role", Value: role, Options: roles},
				{Name: "section", Label: "Section of statements", Value: a.Section, Suggestions: sections},
				{
					Name: "currencies", Label: "Currencies that it takes; empty: all",
					Value: strings.Join(a.Currencies, " "), Placeholder: "EUR USD",
				},
			},
		},
	}, nil
}

// accountChange is what would become of an account.
type accountChange struct {
	Code  string
	New   bool
	Parts []accountPart
}

// accountPart is a part of an account that would be other than it is.
type accountPart struct{ What, Was, Is string }

// accountsCheck is what a change of the chart would do.
type accountsCheck struct {
	Org     string
	Problem string
	// Source is the accounts as CSV, which is what is saved.
	Source  string
	Changes []accountChange
	// Same counts the accounts that are so already.
	Same int
	// Moved are balances that would move to other parts of statements.
	Moved []books.MovedBalance
}

// checkAccounts shows what a change of the chart would do: of one account, or of those of a file.
func (c *console) checkAccounts(ctx context.Context, r *request, org string) (*view, error) {
	d := accountsCheck{Org: org}
	v := &view{Title: "Check the accounts", Template: "accounts-check", Trail: []trail{{"Accounts", r.link("accounts")}}}
	var accounts []models.Account
	source, err := accountsSource(r)
	if err != nil {
		return nil, err
	}
	d.Source = source
	if accounts, err = books.ParseAccounts([]byte(source)); err == nil {
		var change books.Change
		change, err = books.PutAccounts(ctx, c.Pool, org, accounts, books.AccountsOptions{ChangeTypes: true, DryRun: true})
		d.Moved = change.Moved
	}
	if errors.Is(err, books.ErrInvalid) {
		d.Problem = err.Error()
	} else if err != nil {
		return nil, err
	}
	known, err := books.Accounts(ctx, c.Pool, org)
	if err != nil {
		return nil, err
	}
	if d.Problem == "" {
		d.compare(known, accounts)
	}
	v.Data = d
	return v, nil
}

// compare says what would become of each account.
func (d *accountsCheck) compare(known, accounts []models.Account) {
	byCode := make(map[string]*models.Account, len(known))
	for i := range known {
		byCode[known[i].Code] = &known[i]
	}
	for i := range accounts {
		a, was := &accounts[i], byCode[accounts[i].Code]
		change := accountChange{Code: a.Code, New: was == nil}
		if was == nil {
			was = &models.Account{}
		}
		kept := func(is, was string) string {
			switch is {
			case "":
				return was
			case models.NoRoleOrSection:
				return ""
			}
			return is
		}
		for _, p := range []accountPart{
			{"name", was.Name, a.Name},
			{"type", string(was.Type), string(a.Type)},
			{"role", string(was.Role), kept(string(a.Role), string(was.Role))},
			{"section", was.Section, kept(a.Section, was.Section)},
			{"currencies", strings.Join(was.Currencies, " "), strings.Join(a.Currencies, " ")},
		} {
			if p.Was != p.Is {
				change.Parts = append(change.Parts, p)
			}
		}
		if !change.New && len(change.Parts) == 0 {
			d.Same++
			continue
		}
		d.Changes = append(d.Changes, change)
	}
}

// accountsSource is the CSV that a form has: that of its fields, of a file, or of a text.
func accountsSource(r *request) (string, error) {
	err := r.ParseMultipartForm(maxForm) //nolint:gosec // each request has a body of maxForm bytes at most
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return "", unreadableForm(err)
	}
	if r.PostForm.Has("code") {
		return accountsCSV(models.Account{
			Code: strings.TrimSpace(r.PostFormValue("code")), Name: strings.TrimSpace(r.PostFormValue("name")),
			Type: models.AccountType(r.PostFormValue("type")), Role: models.AccountRole(r.PostFormValue("role")),
			Section:    strings.TrimSpace(r.PostFormValue("section")),
			Currencies: strings.Fields(strings.ToUpper(strings.ReplaceAll(r.PostFormValue("currencies"), ",", " "))),
		}), nil
	}
	file, _, err := r.FormFile("file")
	if err != nil {
		return formText(r, "source"), nil // no file was chosen
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	if err != nil || len(text) == 0 {
		return formText(r, "source"), err
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// accountsCSV writes one account as a chart. Without a section it has none.
func accountsCSV(a models.Account) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	section := a.Section
	if section == "" {
		section = models.NoRoleOrSection
	}
	_ = w.Write([]string{"code", "name", "type", "role", "section", "currencies"}) // a Builder takes everything
	_ = w.Write([]string{a.Code, a.Name, string(a.Type), string(a.Role), section, strings.Join(a.Currencies, " ")})
	w.Flush()
	return b.String()
}

// putAccounts changes the chart: as `daybook accounts import` does.
func (c *console) putAccounts(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	accounts, err := books.ParseAccounts([]byte(formText(r, "source")))
	if err != nil {
		return done{Org: org}, err
	}
	change, err := books.PutAccounts(ctx, c.Pool, org, accounts,
		books.AccountsOptions{ChangeTypes: r.PostFormValue("change_types") == "true"})
	if err != nil {
		return done{Org: org}, err
	}
	d := done{
		To: r.link("accounts"), Org: org, Text: "The chart is changed." + broughtBack(change.Returned),
		Details: map[string]any{"accounts": len(accounts), "returned": change.Returned},
	}
	d.unless(change.Changed || change.Returned > 0, "the accounts are so already")
	return d, nil
}

// accountOf finds an account of a chart.
func accountOf(accounts []models.Account, org, code string) (models.Account, error) {
	at := slices.IndexFunc(accounts, func(a models.Account) bool { return a.Code == code })
	if at < 0 {
		return models.Account{}, fmt.Errorf("%w: organization %s has no account %s", errNoAccount, org, code)
	}
	return accounts[at], nil
}

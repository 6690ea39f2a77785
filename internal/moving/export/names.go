package export

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/daybook-dev/daybook/models"
)

// account names an account in the ledger.
type account struct{ org, code string }

// names holds what accounts are called in the file.
type names struct {
	// of makes an account's name. Two accounts never get the same.
	of       func(models.Account) string
	accounts map[account]models.Account
	names    map[account]string
}

func newNames(o Options) *names {
	n := &names{accounts: map[account]models.Account{}, names: map[account]string{}}
	n.of = func(a models.Account) string { return journalAccount(a, o.Organizations) }
	if o.Format == Beancount {
		n.of = func(a models.Account) string { return beancountAccount(a, o.Organizations) }
	}
	return n
}

// add names the accounts of the charts.
func (n *names) add(accounts []models.Account) {
	for _, a := range accounts {
		key := account{a.OrgID, a.Code}
		n.accounts[key] = a
		n.names[key] = n.of(a)
	}
}

// name returns an account's name.
func (n *names) name(org, code string) (string, error) {
	name, ok := n.names[account{org, code}]
	if !ok {
		return "", fmt.Errorf("%w: account %s of organization %s", ErrNoAccount, code, org)
	}
	return name, nil
}

// roots are the first components of names, by the types of accounts.
var roots = map[models.AccountType]string{
	models.AccountAsset: "Assets", models.AccountLiability: "Liabilities", models.AccountEquity: "Equity",
	models.AccountIncome: "Income", models.AccountExpense: "Expenses",
}

// journalAccount is an account's name for hledger and Ledger, such as "assets:1200 Accounts
// receivable". The code ends at the first blank, and what would mean something else in a name is
// percent-encoded in it.
func journalAccount(a models.Account, organizations bool) string {
	name := strings.ToLower(roots[a.Type]) + ":"
	if organizations {
		name += journalComponent(a.OrgID) + ":"
	}
	name += journalComponent(a.Code)
	if text := strings.NewReplacer(":", "-", ";", ",").Replace(oneLine(a.Name)); text != "" {
		name += " " + cut(text, longestText)
	}
	return name
}

// longestComponent is how many bytes Ledger takes between two colons of a name.
const longestComponent = 255

// journalComponent percent-encodes an id. What becomes too long by that ends in a percent sign, a
// tilde and a part of its SHA-256, as no other id does, so different ids stay different.
func journalComponent(id string) string {
	s := encode(id, " :;")
	if len(s) <= longestComponent {
		return s
	}
	end := fmt.Sprintf("%%~%.16x", sha256.Sum256([]byte(id)))
	return strings.ToValidUTF8(s[:longestComponent-len(end)], "") + end
}

// beancountAccount is an account's name for Beancount, such as "Assets:1200-Accounts-receivable".
func beancountAccount(a models.Account, organizations bool) string {
	name := roots[a.Type] + ":"
	if organizations {
		name += beancountComponent(a.OrgID, "") + ":"
	}
	return name + beancountComponent(a.Code, a.Name)
}

// plainComponent is what Beancount takes in a name as it is.
var plainComponent = regexp.MustCompile(`^[A-Z0-9][A-Za-z0-9]*$`)

// beancountComponent makes a component of a name: the id, then what letters and digits the text
// has. Components consist of letters, digits and hyphens, and begin with a capital or a digit. An
// id that does not is written between "X--" and "--", its other bytes in hexadecimal; nothing else
// has two hyphens in a row, so different ids stay different.
func beancountComponent(id, text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	text = strings.Join(words, "-")
	if plainComponent.MatchString(id) {
		return strings.TrimSuffix(id+"-"+text, "-")
	}
	var b strings.Builder
	b.WriteString("X--")
	for i := range len(id) {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "-%02X", c)
		}
	}
	if text != "" {
		b.WriteString("--" + text)
	}
	return b.String()
}

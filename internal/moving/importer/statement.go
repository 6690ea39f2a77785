package importer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// maxStatementBytes bounds a statement of a bank, whose movements are held until its balances are
// checked.
const maxStatementBytes = 64 << 20

// Movement is a booked movement of a bank account as a document: a payment, or, where a payment is
// taken back, a refund. Direction in: the account receives it. No organization is set.
type Movement struct {
	// Place is where it stands in its file, for messages.
	Place    string
	Document models.Document
}

// bankStatement is what camt.053 and MT940 have in common: the movements of one account between two
// balances.
type bankStatement struct {
	format, account string
	// name is what messages call it.
	name string
	// opening and closing are the booked balances by currency, sums the movements between them.
	opening, closing, sums map[string]*big.Rat
	movements              []Movement
	// seen counts the movements that do not differ, by their ids.
	seen map[string]int
}

func newBankStatement(format string) *bankStatement {
	return &bankStatement{
		format: format, opening: map[string]*big.Rat{}, closing: map[string]*big.Rat{}, sums: map[string]*big.Rat{},
		seen: map[string]int{},
	}
}

// bankMovement is a movement as a statement has it. What is empty is not stated.
type bankMovement struct {
	place    string
	currency string
	// amount is what moved at the bank, positive in both directions; fee the part of it that the bank
	// keeps, or adds to what leaves.
	amount, fee *big.Rat
	in          bool
	// back: it takes back a payment of the other direction.
	back           bool
	booked, valued string // YYYY-MM-DD
	// bankRef is the bank's reference, refs are those of the payer and of the order.
	bankRef, refs string
	counterparty  string
	// refersTo are the numbers of documents that it pays.
	refersTo []string
	// attributes are those of the document.
	attributes map[string]string
}

// add takes a movement. Its sum is counted by count, because a batch has several.
func (s *bankStatement) add(m *bankMovement) error {
	doc, err := s.document(m)
	if err != nil {
		return fmt.Errorf("%s: %w", m.place, err)
	}
	s.movements = append(s.movements, Movement{Place: m.place, Document: doc})
	return nil
}

// count adds a signed amount to the sum of what moved between the balances.
func (s *bankStatement) count(currency string, amount *big.Rat, in bool) {
	if s.sums[currency] == nil {
		s.sums[currency] = new(big.Rat)
	}
	if in {
		s.sums[currency].Add(s.sums[currency], amount)
	} else {
		s.sums[currency].Sub(s.sums[currency], amount)
	}
}

func (s *bankStatement) document(m *bankMovement) (models.Document, error) {
	doc := models.Document{Type: models.DocumentPayment, Direction: models.DirectionOut, Currency: m.currency}
	if m.in {
		doc.Direction = models.DirectionIn
	}
	if m.back {
		doc.Type = models.DocumentRefund
	}
	booked, err := models.ParseDate(cmp.Or(m.booked, m.valued))
	if err != nil {
		return doc, invalid("the booking date: %v", err)
	}
	doc.IssueDate = booked
	if m.valued != "" {
		valued, err := models.ParseDate(m.valued)
		if err != nil {
			return doc, invalid("the value date: %v", err)
		}
		doc.ValueDate = &valued
	}
	c := &doc.Content
	c.Source, c.Counterparty, c.Attributes = s.format, m.counterparty, m.attributes
	c.RefersTo = m.refersTo
	// What the payer paid is the amount: the account received it without the fee, or paid the fee too.
	amount := sum(m.amount, m.fee)
	if !m.in {
		amount = sum(m.amount, negated(m.fee))
	}
	if c.Amount, err = wholeMinor(amount, m.currency); err != nil {
		return doc, err
	}
	if c.Fee, err = wholeMinor(sum(m.fee), m.currency); err != nil {
		return doc, err
	}
	c.Zero = !c.StatesAmount()
	doc.ID = s.id(m, &doc)
	return doc, validateUnowned(doc)
}

// id is the same in every statement that has the movement: nothing of it depends on where the
// movement stands. Movements of a statement that do not differ are numbered.
func (s *bankStatement) id(m *bankMovement, doc *models.Document) string {
	parts := []string{
		s.format, s.account, doc.IssueDate.String(), string(doc.Type), string(doc.Direction), m.currency,
		m.amount.RatString(), m.bankRef, m.refs,
	}
	if m.bankRef == "" {
		parts = append(parts, m.valued, m.counterparty)
		for _, name := range statementAttributes {
			parts = append(parts, m.attributes[name])
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	account := s.account
	if len(account) > maxIDBytes/2 {
		account = hashedID([]byte(account))
	}
	id := account + "/" + doc.IssueDate.String() + "/" + hex.EncodeToString(sum[:8])
	s.seen[id]++
	if n := s.seen[id]; n > 1 {
		return fmt.Sprintf("%s/%d", id, n)
	}
	return id
}

// statementAttributes are the attributes that a movement can have.
var statementAttributes = []string{
	"bank_account", "bank_reference", "code", "counterparty_account", "end_to_end", "instructed", "mandate", "reference",
	"text",
}

// wholeMinor returns an amount in minor units, of which a bank moves no fractions.
func wholeMinor(amount *big.Rat, currency string) (int64, error) {
	digits, ok := MinorDigits(currency)
	if !ok {
		return 0, invalid("currency %.20q is not listed in ISO 4217", currency)
	}
	units := scaled(amount, digits)
	if !units.IsInt() {
		return 0, invalid("%s is more precise than %s is", moneyText(amount, currency), currency)
	}
	return toInt64(units.Num(), moneyText(amount, currency))
}

// check compares the balances with what moved between them. A statement that states an opening and
// a closing balance must do so in each currency in which something moved.
func (s *bankStatement) check() error {
	currencies := map[string]bool{}
	for _, of := range []map[string]*big.Rat{s.opening, s.closing, s.sums} {
		for currency := range of {
			currencies[currency] = true
		}
	}
	if len(s.opening) == 0 || len(s.closing) == 0 {
		return nil
	}
	sorted := slices.Sorted(maps.Keys(currencies))
	for _, currency := range sorted {
		if s.opening[currency] == nil || s.closing[currency] == nil {
			return invalid("it has no opening and closing balance in %.10q", currency)
		}
	}
	for _, currency := range sorted {
		opening, closing := s.opening[currency], s.closing[currency]
		follows := sum(opening, s.sums[currency])
		if difference := sum(closing, negated(follows)); difference.Sign() != 0 {
			return invalid("%w", &posting.Error{Code: models.CodeTotalsDiffer, Message: "the closing balance is stated as " +
				moneyText(closing, currency) + ", but the opening balance of " + moneyText(opening, currency) +
				" and the entries come to " + moneyText(follows, currency) + ": a difference of " +
				moneyText(difference, currency) + "; get the whole statement from the bank"})
		}
	}
	return nil
}

// deliver yields the movements of a statement, or why it is refused. more is false if no more is
// wanted.
func (s *bankStatement) deliver(refused error, yield func(Movement, error) bool) (more bool) {
	if refused == nil {
		refused = s.check()
	}
	if refused != nil {
		return yield(Movement{Place: s.name}, refused)
	}
	for _, m := range s.movements {
		if !yield(m, nil) {
			return false
		}
	}
	return true
}

// moneyText writes an amount with the digits that it has, and those of the currency at least.
func moneyText(r *big.Rat, currency string) string {
	digits, _ := MinorDigits(currency)
	exact, _ := r.FloatPrec() // a decimal number ends
	return r.FloatString(max(digits, exact)) + " " + currency
}

// stated leaves out what banks write where nothing is stated.
func stated(text string) string {
	switch text = strings.Join(strings.Fields(text), " "); strings.ToUpper(text) {
	case "NOTPROVIDED", "NOT PROVIDED", "NONREF":
		return ""
	}
	return text
}

// statedEach are the texts that state something, each once.
func statedEach(texts []string) []string {
	var out []string
	for _, text := range texts {
		if text = stated(text); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// attributesOf leaves out what is empty.
func attributesOf(all map[string]string) map[string]string {
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

// statementError words what ended the reading of a statement.
func statementError(err error) error {
	if errors.Is(err, errRowTooLong) {
		return invalid("a statement is longer than %d bytes; get statements of shorter spans from the bank", maxStatementBytes)
	}
	return err
}

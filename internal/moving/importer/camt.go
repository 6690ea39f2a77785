package importer

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"slices"
	"strings"
)

// Camt yields the booked movements of the statements of a file in camt.053. A statement of which an
// entry cannot be read, or whose balances contradict its entries, yields one error that wraps
// ErrInvalid, and so does what makes the rest of the file unreadable. An entry that is not booked,
// and a message of another kind, yields ErrNotBookable.
func Camt(r io.Reader) iter.Seq2[Movement, error] {
	return func(yield func(Movement, error) bool) {
		c := &camtReader{budget: &budgetReader{inner: r, left: maxStatementBytes}, yield: yield}
		decoder, err := xmlDecoder(c.budget, camtSpaces, 0)
		if err == nil {
			c.decoder = decoder
			err = c.read()
		}
		if err != nil && !c.stopped {
			yield(Movement{}, statementError(err))
		}
	}
}

// camtReader reads a file, one statement after the other.
type camtReader struct {
	budget  *budgetReader
	decoder *xml.Decoder
	yield   func(Movement, error) bool
	// former is the statement before, of which the next one may be a further page.
	former  *bankStatement
	root    bool // an element was read
	found   bool // a message of this kind was
	stopped bool
}

func (c *camtReader) read() error {
	for !c.stopped {
		token, err := c.decoder.Token()
		if errors.Is(err, io.EOF) && c.root {
			if !c.found {
				return invalid("it has no statement of camt.053 (BkToCstmrStmt)")
			}
			return nil
		}
		if err != nil {
			return xmlError(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		c.root = true
		switch name := start.Name; {
		case name.Space == "camt.052", name.Space == "camt.054":
			return &NotBookableError{Schema: name.Space}
		case name == xml.Name{Space: "camt", Local: "BkToCstmrStmt"}:
			c.found = true
		case name == xml.Name{Space: "camt", Local: "Stmt"}:
			if err := c.statement(); err != nil {
				return err
			}
		}
	}
	return nil
}

// statement reads one statement. The error makes the rest of the file unreadable.
func (c *camtReader) statement() error {
	c.budget.left = maxStatementBytes
	s := &camtStatement{bankStatement: newBankStatement("camt"), former: c.former}
	s.name = "a statement"
	c.former = s.bankStatement
	for {
		token, err := c.decoder.Token()
		if err != nil {
			return xmlError(err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if err := s.element(c.decoder, &t); err != nil {
				return xmlError(err)
			}
		case xml.EndElement:
			for _, status := range s.pending {
				if !c.yield(Movement{Place: s.name + ": " + status.place}, status.err) {
					c.stopped = true
					return nil
				}
			}
			s.balances()
			c.stopped = !s.deliver(s.refused, c.yield)
			return nil
		}
	}
}

type camtStatement struct {
	*bankStatement
	former  *bankStatement
	stated  []camtBalance
	entries int
	// pending are the entries that are not booked.
	pending []camtPending
	refused error // the first entry that cannot be read
}

type camtPending struct {
	place string
	err   error
}

// element reads a part of the statement. The error is one of the XML.
func (s *camtStatement) element(decoder *xml.Decoder, start *xml.StartElement) error {
	switch start.Name {
	case xml.Name{Space: "camt", Local: "Id"}:
		var id string
		err := decoder.DecodeElement(&id, start)
		s.name = "statement " + trimmed(id)
		return err
	case xml.Name{Space: "camt", Local: "Acct"}:
		var account camtAccount
		err := decoder.DecodeElement(&account, start)
		s.account = account.id()
		return err
	case xml.Name{Space: "camt", Local: "Bal"}:
		var balance camtBalance
		err := decoder.DecodeElement(&balance, start)
		s.stated = append(s.stated, balance)
		return err
	case xml.Name{Space: "camt", Local: "Ntry"}:
		var entry camtEntry
		if err := decoder.DecodeElement(&entry, start); err != nil {
			return err
		}
		if s.entries == 0 { // what it begins with stands above its entries
			s.beginsAt = s.interim("OPBD", "PRCD")
			s.follow(s.former)
		}
		s.entries++
		place := fmt.Sprintf("entry %d", s.entries)
		if status := entry.Status.text(); status != "" && status != "BOOK" {
			s.pending = append(s.pending, camtPending{place, &NotBookableError{Schema: "an entry", Type: status}})
			return nil
		}
		if s.refused == nil {
			s.refused = s.entry(&entry, place)
		}
		return nil
	}
	return decoder.Skip()
}

// interim is the interim balance at which the statement begins or ends; empty: it has one of those
// that are final, or none.
func (s *camtStatement) interim(final ...string) string {
	at := ""
	for _, b := range s.stated {
		switch code := trimmed(b.Code); {
		case slices.Contains(final, code):
			return ""
		case code == "ITBD" && (at == "" || slices.Contains(final, "CLBD")): // the first, or the last
			if amount, in, err := camtSigned(b.Amount, b.Side); err == nil {
				at = balanceText(trimmed(b.Amount.Currency), signedRat(amount, in))
			}
		}
	}
	return at
}

// balances finds the opening and the closing balance of each currency. The pages of a statement may
// have interim ones in their place.
func (s *camtStatement) balances() {
	s.endsAt = s.interim("CLBD")
	for _, from := range []struct {
		to    map[string]*big.Rat
		codes []string
		last  bool
	}{
		{s.opening, []string{"OPBD", "PRCD", "ITBD"}, false},
		{s.closing, []string{"CLBD", "ITBD"}, true},
	} {
		for _, code := range from.codes {
			found := map[string]*big.Rat{}
			for i, b := range s.stated {
				if trimmed(b.Code) != code {
					continue
				}
				amount, in, err := camtSigned(b.Amount, b.Side)
				if err != nil && s.refused == nil {
					s.refused = fmt.Errorf("balance %d: %w", i+1, err)
				}
				if found[b.Amount.Currency] == nil || from.last {
					found[b.Amount.Currency] = signedRat(amount, in)
				}
			}
			for currency, amount := range found {
				if from.to[currency] == nil {
					from.to[currency] = amount
				}
			}
		}
	}
}

func signedRat(amount *big.Rat, in bool) *big.Rat {
	if in {
		return sum(amount)
	}
	return negated(amount)
}

// camtSigned reads an amount and its side.
func camtSigned(a camtAmount, side string) (amount *big.Rat, in bool, err error) {
	text := xmlDecimal(a.Text)
	if text == "" {
		return nil, false, invalid("the amount is missing")
	}
	if amount, err = decimal(text).rat(); err != nil {
		return nil, false, err
	}
	switch trimmed(side) {
	case "CRDT":
		return amount, true, nil
	case "DBIT":
		return amount, false, nil
	}
	return nil, false, invalid("CdtDbtInd is %.20q; want CRDT or DBIT", side)
}

// entry takes a booked entry. A batch is one movement for each of its transactions, if they add up
// to the entry.
func (s *camtStatement) entry(e *camtEntry, place string) error {
	amount, in, err := camtSigned(e.Amount, e.Side)
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if s.account == "" {
		return invalid("%s: the statement names no account (Acct) above it", place)
	}
	currency := trimmed(e.Amount.Currency)
	s.count(currency, amount, in)
	entry := bankMovement{
		place: place, currency: currency, amount: amount, in: in, back: camtTrue(e.Reversal), booked: e.Booked.day(),
		valued: e.Valued.day(), bankRef: stated(e.Reference),
	}
	batch := s.batch(e, &entry)
	if batch == nil {
		var only camtTransaction
		if len(e.Transactions) == 1 {
			only = e.Transactions[0]
		}
		if len(only.Charges) == 0 {
			only.Charges = e.Charges
		}
		if only.Amounts == (camtAmounts{}) {
			only.Amounts = e.Amounts
		}
		m := s.movement(e, &only, entry)
		m.fee = camtFee(&only, &m)
		return s.add(&m)
	}
	for i := range batch {
		if err := s.add(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// batch returns the movements of a batch's transactions; nil: the entry is none, or its transactions
// do not add up to it, with their fees or without them.
func (s *camtStatement) batch(e *camtEntry, entry *bankMovement) []bankMovement {
	if len(e.Transactions) < 2 {
		return nil
	}
	plain, whole := new(big.Rat), new(big.Rat)
	movements := make([]bankMovement, len(e.Transactions))
	for i := range e.Transactions {
		t := &e.Transactions[i]
		stated := t.Amount
		if trimmed(stated.Text) == "" {
			stated = t.Amounts.Moved
		}
		amount, in, err := camtSigned(stated, cmp.Or(trimmed(t.Side), trimmed(e.Side)))
		if err != nil || trimmed(stated.Currency) != entry.currency {
			return nil
		}
		of := *entry
		of.place, of.in = fmt.Sprintf("%s, transaction %d", entry.place, i+1), in
		m := s.movement(e, t, of)
		m.amount, m.fee = amount, camtCharged(t.Charges, entry.currency)
		plain.Add(plain, signedRat(amount, in))
		whole.Add(whole, sum(signedRat(amount, in), negated(m.fee)))
		movements[i] = m
	}
	switch want := signedRat(entry.amount, entry.in); {
	case plain.Cmp(want) == 0:
		for i := range movements {
			movements[i].fee = nil
		}
	case whole.Cmp(want) == 0:
		for i := range movements {
			m := &movements[i]
			m.amount = sum(m.amount, negated(signedRat(m.fee, m.in)))
		}
	default:
		return nil
	}
	return movements
}

// camtFee returns the charges of an entry if they are the difference between what was paid and what
// moved.
func camtFee(t *camtTransaction, m *bankMovement) *big.Rat {
	paid := t.Amounts.Moved
	if trimmed(paid.Text) == "" {
		paid = t.Amounts.Instructed
	}
	fee := camtCharged(t.Charges, m.currency)
	amount, _, err := camtSigned(paid, "CRDT")
	if err != nil || fee == nil || trimmed(paid.Currency) != m.currency ||
		sum(amount, negated(signedRat(fee, m.in))).Cmp(m.amount) != 0 {
		return nil
	}
	return fee
}

// camtCharged adds up charges; nil: there are none, or some in another currency.
func camtCharged(charges []camtCharges, currency string) *big.Rat {
	var total *big.Rat
	for _, c := range charges {
		for _, r := range append(c.Records, c.camtCharge) {
			if trimmed(r.Amount.Text) == "" {
				continue
			}
			amount, back, err := camtSigned(r.Amount, cmp.Or(trimmed(r.Side), "DBIT"))
			if err != nil || trimmed(r.Amount.Currency) != currency {
				return nil
			}
			total = sum(total, negated(signedRat(amount, back)))
		}
	}
	return total
}

// movement is what an entry and one of its transactions say beside amounts.
func (s *camtStatement) movement(e *camtEntry, t *camtTransaction, m bankMovement) bankMovement {
	m.back = m.back || t.Return != nil
	p := &t.Parties
	payer, payee := cmp.Or(p.Debtor.name(), p.UltimateDebtor.name()), cmp.Or(p.Creditor.name(), p.UltimateCreditor.name())
	other, account := payer, p.DebtorAccount.id()
	// What is taken back names the parties as the first payment did.
	if m.in == m.back && p.CreditorAccount.id() != s.account || account != "" && account == s.account {
		other, account = payee, p.CreditorAccount.id()
	}
	m.counterparty = cmp.Or(other, payer, payee)
	var references, texts []string
	for _, r := range t.Remittance.Structured {
		references = append(append(references, r.Reference), r.Documents...)
		m.refersTo = append(m.refersTo, statedEach(append([]string{r.Reference}, r.Documents...))...)
		texts = append(texts, r.Texts...)
	}
	texts = append(append(texts, t.Remittance.Texts...), t.Text, e.Text)
	bank := cmp.Or(stated(t.Refs.Bank), m.bankRef)
	m.refs = strings.Join([]string{
		stated(t.Refs.Bank), stated(t.Refs.Instruction), stated(t.Refs.EndToEnd), stated(t.Refs.Transaction),
	}, "\x00")
	if m.bankRef == "" {
		m.bankRef = stated(t.Refs.Bank)
	}
	m.attributes = attributesOf(map[string]string{
		"bank_account": s.account, "bank_reference": bank, "counterparty_account": account,
		"code": cmp.Or(t.Code.text(), e.Code.text()), "end_to_end": stated(t.Refs.EndToEnd), "mandate": stated(t.Refs.Mandate),
		"reference": joined(references), "text": joined(texts), "instructed": camtInstructed(t.Amounts.Instructed, m.currency),
	})
	return m
}

// joined joins what is stated, each text once.
func joined(texts []string) string {
	var parts []string
	seen := map[string]bool{"": true}
	for _, text := range texts {
		if text = stated(text); !seen[text] {
			seen[text] = true
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " ")
}

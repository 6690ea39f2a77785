package importer

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/daybook-dev/daybook/models"
)

// MT940 yields the movements of the statements of a file in SWIFT's MT940. A statement of which an
// entry cannot be read, or whose balances contradict its entries, yields one error that wraps
// ErrInvalid. An interim report (MT942) yields ErrNotBookable.
func MT940(r io.Reader) iter.Seq2[Movement, error] {
	return func(yield func(Movement, error) bool) {
		m := &mtReader{budget: &budgetReader{inner: r, left: maxStatementBytes}, yield: yield}
		if err := m.read(); err != nil && !m.stopped {
			yield(Movement{}, statementError(err))
		}
	}
}

// mtReader reads a file line by line.
type mtReader struct {
	budget  *budgetReader
	yield   func(Movement, error) bool
	line    int
	found   bool
	stopped bool
	// fields are those of the statement that is read; nil: none is.
	fields []mtField
}

// mtField is a field of a message: its tag and its lines.
type mtField struct {
	tag   string
	lines []string
	line  int
}

// mtTag begins a field. mtEnd ends a message.
var mtTag = regexp.MustCompile(`^:(\d\d[A-Z]?|NS):`)

func mtEnd(line string) bool { return line == "-" || strings.HasPrefix(line, "-}") }

func (m *mtReader) read() error {
	lines := bufio.NewReader(m.budget)
	for !m.stopped {
		text, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		m.line++
		m.take(mtText(text))
		if err != nil {
			break
		}
	}
	if !m.stopped {
		m.deliver()
	}
	if !m.found && !m.stopped {
		return invalid("it is not MT940: no line begins with :20:")
	}
	return nil
}

// mtText is a line as text: UTF-8 or, as many banks still write, Windows-1252.
func mtText(line string) string {
	line = strings.TrimRight(strings.TrimPrefix(line, "\ufeff"), "\r\n")
	if !utf8.ValidString(line) {
		if decoded, err := charmap.Windows1252.NewDecoder().String(line); err == nil {
			line = decoded
		}
	}
	return strings.ReplaceAll(line, "\x00", "")
}

// take adds a line to the statement that is read. What stands outside of one is the envelope.
func (m *mtReader) take(line string) {
	if i := strings.LastIndex(line, "{4:"); i >= 0 && m.fields == nil {
		line = line[i+len("{4:"):]
	}
	tag := mtTag.FindStringSubmatch(line)
	switch {
	case tag != nil && tag[1] == "20":
		m.deliver()
		m.found = true
		m.budget.left = maxStatementBytes
		fallthrough
	case tag != nil && m.fields != nil:
		m.fields = append(m.fields, mtField{tag[1], []string{line[len(tag[0]):]}, m.line})
	case m.fields == nil:
	case mtEnd(line):
		m.deliver()
	default:
		last := &m.fields[len(m.fields)-1]
		last.lines = append(last.lines, line)
	}
}

// deliver yields the statement that was read.
func (m *mtReader) deliver() {
	fields := m.fields
	m.fields = nil
	if fields == nil || m.stopped {
		return
	}
	s := &mtStatement{bankStatement: newBankStatement("mt940"), first: fields[0].line}
	s.name = fmt.Sprintf("line %d", s.first)
	for i := range fields {
		switch fields[i].tag {
		case "13D", "34F", "90C", "90D":
			m.stopped = !m.yield(Movement{Place: s.name}, &NotBookableError{Schema: "MT942"})
			return
		}
	}
	m.stopped = !s.deliver(s.read(fields), m.yield)
}

type mtStatement struct {
	*bankStatement
	first    int
	currency string
	entry    *bankMovement // the last one, whose field 86 may follow
	details  string        // what field 61 says on its further lines
}

func (s *mtStatement) read(fields []mtField) error {
	for i := range fields {
		f := &fields[i]
		if err := s.field(f); err != nil {
			return fmt.Errorf("line %d: field %s: %w", f.line, f.tag, err)
		}
	}
	if err := s.endEntry(""); err != nil {
		return err
	}
	switch {
	case s.account == "":
		return invalid("it names no account (field 25)")
	case len(s.opening) == 0:
		return invalid("it has no opening balance (field 60F)")
	case len(s.closing) == 0:
		return invalid("it has no closing balance (field 62F); is the file cut off?")
	}
	return nil
}

func (s *mtStatement) field(f *mtField) error {
	text := trimmed(f.lines[0])
	switch f.tag {
	case "20":
		s.name += ": statement " + text
	case "25", "25P":
		s.account = text
	case "60F", "60M", "62F", "62M":
		if err := s.endEntry(""); err != nil {
			return err
		}
		return s.balance(f.tag[:2] == "60", text)
	case "61":
		if err := s.endEntry(""); err != nil {
			return err
		}
		return s.statementLine(f)
	case "86": // behind the closing balance it is about the whole statement
		return s.endEntry(mtJoin(f.lines, mtWidth))
	}
	return nil
}

var mtBalance = regexp.MustCompile(`^([CD])(\d{6})([A-Z]{3})(\d+(?:[,.]\d*)?)$`)

func (s *mtStatement) balance(opens bool, text string) error {
	parts := mtBalance.FindStringSubmatch(text)
	if parts == nil {
		return invalid("%.60q is not a balance such as C250131EUR1234,50", text)
	}
	amount, err := mtAmount(parts[4])
	if err != nil {
		return err
	}
	s.currency = parts[3]
	to := s.closing
	if opens {
		to = s.opening
	}
	to[s.currency] = signedRat(amount, parts[1] == "C")
	return nil
}

// mtAmount reads an amount with a decimal comma, for which some banks have a point.
func mtAmount(text string) (*big.Rat, error) {
	return decimal(strings.TrimSuffix(strings.Replace(text, ",", ".", 1), ".")).rat()
}

// mtLine is field 61: value date, booking day, side, the last letter of the currency, amount, type,
// the account owner's reference, the bank's.
var mtLine = regexp.MustCompile(
	`^(\d{6})(\d{4})?(R?[CD])([A-Z])?(\d+(?:[,.]\d*)?)(?:\s*[NSF]([A-Z0-9 ]{3})(.*?))?(?://(.*))?$`)

func (s *mtStatement) statementLine(f *mtField) error {
	parts := mtLine.FindStringSubmatch(strings.TrimRight(f.lines[0], " "))
	if parts == nil {
		return invalid("%.60q is not an entry such as 2501310131D12,50NTRFNONREF", f.lines[0])
	}
	if s.currency == "" {
		return invalid("the opening balance (field 60F) must stand above it")
	}
	valued, err := mtDate(parts[1])
	if err != nil {
		return err
	}
	booked := valued
	if parts[2] != "" {
		if booked, err = mtBookedDate(valued, parts[2]); err != nil {
			return err
		}
	}
	amount, err := mtAmount(parts[5])
	if err != nil {
		return err
	}
	// RC takes back what was credited, RD what was debited.
	side := parts[3]
	in := side == "C" || side == "RD"
	s.count(s.currency, amount, in)
	s.entry = &bankMovement{
		place: fmt.Sprintf("line %d", f.line), currency: s.currency, amount: amount, in: in,
		back:   strings.HasPrefix(side, "R") || parts[6] == "RTI", // RTI: a returned item
		booked: booked.String(), valued: valued.String(), bankRef: stated(parts[8]), refs: stated(parts[7]),
		attributes: map[string]string{
			"bank_account": s.account, "bank_reference": stated(parts[8]), "code": trimmed(parts[6]), "end_to_end": stated(parts[7]),
		},
	}
	s.details = mtJoin(f.lines[1:], mtWidth)
	return nil
}

// mtDate reads YYMMDD. Some banks count interest by months of 30 days, and write a 30th of February.
func mtDate(text string) (models.Date, error) {
	year, month, day := digitsOf(text[:2])+2000, time.Month(digitsOf(text[2:4])), digitsOf(text[4:])
	if year > 2079 {
		year -= 100
	}
	return mtDay(year, month, day, text)
}

func mtDay(year int, month time.Month, day int, text string) (models.Date, error) {
	if month == time.February && day <= 30 {
		day = min(day, time.Date(year, time.March, 0, 0, 0, 0, 0, time.UTC).Day())
	}
	if d := time.Date(year, month, day, 0, 0, 0, 0, time.UTC); d.Month() != month || d.Day() != day {
		return models.Date{}, invalid("%q is not a date", text)
	}
	return models.NewDate(year, month, day), nil
}

// mtBookedDate reads MMDD: the day of that name that is next to the value date.
func mtBookedDate(valued models.Date, text string) (models.Date, error) {
	month := time.Month(digitsOf(text[:2]))
	year := valued.Time().Year()
	switch apart := int(month) - int(valued.Time().Month()); {
	case apart > 6:
		year--
	case apart < -6:
		year++
	}
	return mtDay(year, month, digitsOf(text[2:]), text)
}

// digitsOf reads digits; none are zero.
func digitsOf(digits string) int {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// endEntry takes the entry whose field 86 is given, if there is one.
func (s *mtStatement) endEntry(information string) error {
	m := s.entry
	if m == nil {
		return nil
	}
	s.entry = nil
	d := mtDetailsOf(information)
	m.counterparty, m.refersTo = d.name, d.refersTo
	m.back = m.back || d.returned
	m.fee = mtFee(s.details+" "+information, m)
	m.attributes["counterparty_account"], m.attributes["mandate"] = d.account, d.mandate
	m.attributes["text"] = joined([]string{d.text, s.details})
	m.attributes["code"] = cmp.Or(d.code, m.attributes["code"])
	m.attributes["end_to_end"] = cmp.Or(d.endToEnd, m.attributes["end_to_end"])
	m.attributes = attributesOf(m.attributes)
	return s.add(m)
}

// mtParts are an ordered amount and the bank's charges, as field 61 or 86 has them.
var (
	mtOrdered = regexp.MustCompile(`/OCMT/([A-Z]{3})(\d+(?:,\d*)?)/`)
	mtCharges = regexp.MustCompile(`/CHGS/([A-Z]{3})(\d+(?:,\d*)?)/`)
)

// mtFee returns the charges of an entry if they are the difference between what was paid and what
// moved. What was ordered in another currency becomes an attribute.
func mtFee(text string, m *bankMovement) *big.Rat {
	ordered, charged := mtOrdered.FindStringSubmatch(text), mtCharges.FindStringSubmatch(text)
	if ordered != nil && ordered[1] != m.currency {
		m.attributes["instructed"] = strings.Replace(ordered[2], ",", ".", 1) + " " + ordered[1]
		return nil
	}
	if ordered == nil || charged == nil || charged[1] != m.currency {
		return nil
	}
	paid, err := mtAmount(ordered[2])
	fee, feeErr := mtAmount(charged[2])
	if err != nil || feeErr != nil || sum(paid, negated(signedRat(fee, m.in))).Cmp(m.amount) != 0 {
		return nil
	}
	return fee
}

// mtWidth is the width at which lines of fields are broken, within a word too.
const mtWidth = 65

// mtJoin joins the lines of a text. Where a line is not full the break stands for a space.
func mtJoin(lines []string, width int) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 && utf8.RuneCountInString(lines[i-1]) < width {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

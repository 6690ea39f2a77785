package importer

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
)

// JournalOptions are what a journal of hledger does not say.
type JournalOptions struct {
	// Org is the organization, By who wrote the entries.
	Org, By string
	// Reason is why they are posted, for transactions without a description.
	Reason string
}

// HLedger reads the transactions of a journal in hledger's format, a document each: comments,
// directives that only declare, and transactions whose postings have an account and an amount in a
// currency of ISO 4217, or one account without an amount that takes the rest. Tags are dimensions. The code of an
// account is what its name has between the last colon and the first blank, percent-encoded as
// package export writes it. What needs more of hledger, such as costs or other files, is refused,
// with the command that makes it plain.
//
// A transaction's id is its tag "id", or else made of what it says, so that a file can be imported again. One that is wrong yields an
// error that names its line and wraps ErrInvalid, and reading goes on with the next; after any
// other error reading ends.
func HLedger(r io.Reader, o JournalOptions) iter.Seq2[LineDocument, error] {
	return func(yield func(LineDocument, error) bool) {
		text, err := bom.Reader(r)
		if err != nil {
			yield(LineDocument{}, invalid("%v", err))
			return
		}
		j := journalReader{
			options: o, numbers: Mapping{decimal: ".", thousands: ","}, same: map[string]int{}, yield: yield,
		}
		scanner := bufio.NewScanner(text)
		scanner.Buffer(make([]byte, 0, 64<<10), MaxLineBytes)
		for scanner.Scan() && !j.ended {
			j.line++
			j.read(strings.TrimRight(scanner.Text(), " \t\r"))
		}
		j.finish()
		err = scanner.Err()
		switch {
		case j.ended:
			return
		case errors.Is(err, bufio.ErrTooLong):
			err = invalid("it is longer than %d bytes", MaxLineBytes)
		case err == nil && j.comment:
			err = invalid("the comment has no end: write \"end comment\"")
		}
		if err != nil {
			yield(LineDocument{}, fmt.Errorf("line %d: %w", j.line+1, err))
		}
	}
}

// journalReader reads a journal line by line.
type journalReader struct {
	options JournalOptions
	// numbers says which mark is the decimal one; marked: by a directive.
	numbers Mapping
	marked  bool
	// comma is an amount with a decimal comma, in a directive.
	comma string
	line  int
	// comment is inside of a comment of several lines; ended: no more is wanted.
	comment, ended bool
	// same counts the transactions that say the same.
	same  map[string]int
	yield func(LineDocument, error) bool

	// The transaction that is being read; begin 0: none. wrong is why it cannot be
	// read, in the line wrongAt. open is the posting without an amount; -1: none.
	// zero: the posting before is of no amount, and left out.
	begin   int
	doc     models.Document
	open    int
	zero    bool
	wrong   error
	wrongAt int
}

var (
	// journalHead is a date, a second date, a mark, a code and a description.
	journalHead = regexp.MustCompile(`^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(=\S+)?(?:\s+[*!])?(?:\s+\(([^)]*)\))?(?:\s+(.*))?$`)
	// journalWide is what ends the name of an account.
	journalWide = regexp.MustCompile(`\t| {2,}`)
	// journalDate is a date of a posting, in its comment.
	journalDate = regexp.MustCompile(`(?:^|[\s,])date:\s*\d|\[[-/.=\d]*\d[-/.=\d]*\]`)
)

// notDimensions are tags that Daybook's own exports, or hledger, use for something else.
var notDimensions = []string{
	"id", "date", "date2", "type", "org", "doc", "party", "version", "impact", "kind", "reverses", "rule", "epoch", "line",
}

// declarations are the directives that change nothing about what is posted.
var declarations = []string{"account", "commodity", "payee", "tag", "P", "D"}

// plainJournal is how hledger writes a journal that needs nothing else.
const plainJournal = "write it out by: hledger print -x"

func (j *journalReader) read(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case j.comment:
		j.comment = line != "end comment"
	case strings.TrimSpace(line) == "":
		j.finish()
	case line[0] == ' ' || line[0] == '\t':
		if j.begin > 0 && j.wrong == nil {
			j.wrong, j.wrongAt = j.posting(strings.TrimSpace(line)), j.line
		}
		if j.begin == 0 && strings.HasPrefix(strings.TrimSpace(line), "format") { // of a commodity
			j.style(line)
		}
	case strings.ContainsRune(";#*", rune(line[0])):
	case line == "comment":
		j.finish()
		j.comment = true
	case slices.Contains(declarations, word):
		j.finish()
		if word == "commodity" || word == "D" {
			j.style(rest)
		}
	case word == "decimal-mark":
		j.finish()
		j.marks(strings.TrimSpace(rest))
	case line[0] >= '0' && line[0] <= '9':
		j.finish()
		j.styled()
		j.begin, j.open, j.zero, j.doc = j.line, -1, false, models.Document{}
		j.wrong, j.wrongAt = j.head(line), j.line
	default:
		j.finish()
		j.put(LineDocument{Line: j.line}, invalid("%.40q is not read here; %s", word, plainJournal))
	}
}

// put hands over a document, or why there is none.
func (j *journalReader) put(d LineDocument, err error) {
	if err != nil {
		err = fmt.Errorf("line %d: %w", d.Line, err)
	}
	if !j.ended {
		j.ended = !j.yield(d, err)
	}
}

// tags reads the tags of a comment: "id" names the transaction, and each other whose name is the key
// of a dimension is one.
func (j *journalReader) tags(comment string, into *models.Dimensions) {
	for part := range strings.SplitSeq(comment, ",") {
		name, value, ok := strings.Cut(part, ":")
		words := strings.Fields(name)
		if !ok || len(words) == 0 || strings.HasSuffix(name, " ") {
			continue
		}
		name, value = strings.TrimPrefix(words[len(words)-1], "dim-"), strings.TrimSpace(value)
		if words[len(words)-1] == "id" && into == &j.doc.Content.Dimensions {
			j.doc.ID = value
			continue
		}
		own := name != words[len(words)-1] // it comes from an export, which encodes values
		if plain, err := url.PathUnescape(value); err == nil {
			value = plain
		}
		if value == "" || strings.HasPrefix(value, "//") || models.CheckDimension(name, value) != nil ||
			!own && slices.Contains(notDimensions, name) {
			continue
		}
		if *into == nil {
			*into = models.Dimensions{}
		}
		(*into)[name] = value
	}
}

// head reads the first line of a transaction.
func (j *journalReader) head(line string) error {
	line, comment, _ := strings.Cut(line, ";")
	parts := journalHead.FindStringSubmatch(strings.TrimSpace(line))
	if parts == nil {
		return invalid("%.60q does not begin as a transaction does, with a date such as 2026-01-31 and a description", line)
	}
	date, err := models.ParseDate(fmt.Sprintf("%s-%02s-%02s", parts[1], parts[2], parts[3]))
	if err != nil {
		return invalid("%v", err)
	}
	if parts[4] != "" {
		return invalid("a second date is not read here; %s", plainJournal)
	}
	j.doc = models.Document{
		OrgID: j.options.Org, Type: models.DocumentJournal, Direction: models.DirectionOut, IssueDate: date,
		Content: models.Content{Number: parts[5], Source: "hledger", Journal: &models.Journal{
			Reason: cmp.Or(strings.TrimSpace(parts[6]), j.options.Reason), By: j.options.By,
		}},
	}
	if j.doc.Content.Journal.Reason == "" {
		return invalid("the transaction has no description, which says why it is posted; write one, or give --reason")
	}
	j.tags(comment, &j.doc.Content.Dimensions)
	return nil
}

// posting reads a line below the first one.
func (j *journalReader) posting(line string) error {
	line, comment, commented := strings.Cut(line, ";")
	line = strings.TrimSpace(line)
	comment = strings.TrimSpace(comment)
	entries := &j.doc.Content.Journal.Entries
	if journalDate.MatchString(comment) && (line != "" || len(*entries) > 0) {
		return invalid("%.60q gives the posting a date of its own, and a document has one date: make it a transaction of its own",
			comment)
	}
	if line == "" && commented {
		switch n := len(*entries); {
		case j.zero:
		case n == 0:
			j.tags(comment, &j.doc.Content.Dimensions)
		default:
			j.tags(comment, &(*entries)[n-1].Dimensions)
		}
		return nil
	}
	if mark, rest, ok := strings.Cut(line, " "); ok && (mark == "*" || mark == "!") {
		line = strings.TrimSpace(rest)
	}
	name, amount := line, ""
	if wide := journalWide.FindStringIndex(line); wide != nil {
		name, amount = line[:wide[0]], strings.TrimSpace(line[wide[1]:])
	}
	if strings.ContainsRune("([", rune(name[0])) {
		return invalid("%.60q is a virtual posting, which no ledger has; leave it out", name)
	}
	entry := models.JournalEntry{Note: comment}
	j.tags(comment, &entry.Dimensions)
	var err error
	if entry.Account, err = accountCode(name); err != nil {
		return err
	}
	// What the balance is said to be is for hledger to check.
	amount, assertion, asserted := strings.Cut(amount, "=")
	amount = strings.TrimSpace(amount)
	switch {
	case amount == "" && asserted:
		return invalid("%.60q sets a balance (= %s) instead of an amount; %s", name, strings.TrimSpace(assertion), plainJournal)
	case amount == "" && j.open >= 0:
		return invalid("two postings have no amount")
	case amount == "":
		j.open = len(*entries)
	case strings.ContainsAny(amount, "@{"):
		return invalid("%.60q has a cost; post each currency on its own, by way of an account for exchange", amount)
	default:
		if entry.Amount, entry.Currency, err = j.amount(amount); err != nil {
			return err
		}
		if j.zero = entry.Amount == 0; j.zero {
			return nil
		}
	}
	j.zero = false
	*entries = append(*entries, entry)
	return nil
}

// accountCode is the code that stands in an account's name.
func accountCode(name string) (string, error) {
	code, _, _ := strings.Cut(strings.TrimSpace(name[strings.LastIndex(name, ":")+1:]), " ")
	plain, err := url.PathUnescape(code)
	if err != nil || plain == "" {
		return "", invalid("the account %.60q has no code after its last colon", name)
	}
	return plain, nil
}

// finish hands over the transaction that was being read.
func (j *journalReader) finish() {
	if j.begin == 0 || j.ended {
		return
	}
	d := LineDocument{Line: j.begin, Document: j.doc}
	j.begin = 0
	if j.wrong == nil {
		j.wrong, j.wrongAt = j.complete(&d.Document), d.Line
	}
	if j.wrong != nil {
		d = LineDocument{Line: j.wrongAt}
	}
	j.put(d, j.wrong)
}

// complete fills in the open posting, the currency and the id.
func (j *journalReader) complete(doc *models.Document) error {
	journal := doc.Content.Journal
	if j.open >= 0 {
		if err := j.fillOpen(journal); err != nil {
			return err
		}
	}
	if len(journal.Entries) == 0 {
		doc.Content.Journal = nil
		return invalid("the transaction posts nothing")
	}
	doc.Currency = journal.Entries[0].Currency
	for i := range journal.Entries {
		if e := &journal.Entries[i]; e.Currency == doc.Currency {
			e.Currency = ""
		}
	}
	if doc.ID == "" {
		says := []any{doc.IssueDate, doc.Content.Number, journal.Reason, doc.Currency, journal.Entries}
		if doc.Content.Dimensions != nil {
			says = append(says, doc.Content.Dimensions)
		}
		said, err := json.Marshal(says)
		if err != nil {
			return err
		}
		doc.ID = hashedID(said)
		j.same[doc.ID]++
		if n := j.same[doc.ID]; n > 1 {
			doc.ID += fmt.Sprintf("/%d", n)
		}
	}
	return Validate(*doc)
}

// fillOpen gives the posting without an amount what the others come to, in each currency.
func (j *journalReader) fillOpen(journal *models.Journal) error {
	open := journal.Entries[j.open]
	var rest []models.JournalEntry
	for i, e := range journal.Entries {
		if i == j.open {
			continue
		}
		at := slices.IndexFunc(rest, func(r models.JournalEntry) bool { return r.Currency == e.Currency })
		if at < 0 {
			at = len(rest)
			rest = append(rest, models.JournalEntry{
				Account: open.Account, Note: open.Note, Currency: e.Currency, Dimensions: open.Dimensions,
			})
		}
		sum := rest[at].Amount - e.Amount
		if (sum < rest[at].Amount) != (e.Amount > 0) || e.Amount == math.MinInt64 || sum == math.MinInt64 {
			return invalid("the sum of the amounts is out of range")
		}
		rest[at].Amount = sum
	}
	rest = slices.DeleteFunc(rest, func(r models.JournalEntry) bool { return r.Amount == 0 })
	journal.Entries = slices.Replace(journal.Entries, j.open, j.open+1, rest...)
	return nil
}

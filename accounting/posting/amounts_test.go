package posting_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
)

// byTheBook posts every type by the fields that docs/import.md names.
const byTheBook = `
ruleset: book
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: receivable, side: debit, account: "1200", amount: doc.payable}
      - {id: prepaid, side: debit, account: "3250", amount: doc.prepaid}
      - {id: revenue, side: credit, account: "4400", each: doc.lines, amount: line.net}
      - {id: tax, side: credit, account: "3800", each: doc.taxes, amount: tax.amount}
    rounding: {account: "6969", max_minor: 2}
  - {id: credit, when: doc.type == "credit_note", like: sale, negate: true}
  - id: payable
    when: doc.type == "owed"
    lines:
      - {id: a, side: debit, account: "1200", amount: doc.payable}
      - {id: b, side: credit, account: "4400", amount: doc.payable}
  - id: money
    when: doc.type in ["payment", "refund", "payout"]
    lines:
      - {id: transit, side: debit, account: "1360", amount: doc.amount - doc.fee}
      - {id: fee, side: debit, account: "6855", amount: doc.fee}
      - {id: receivable, side: credit, account: "1200", amount: doc.amount}
  - id: delivery
    when: doc.type == "delivery"
    lines:
      - {id: cost, side: debit, account: "5000", each: doc.lines, amount: line.cost, if: line.kind != "gift"}
      - {id: inventory, side: credit, account: "1140", each: doc.lines, amount: line.cost, if: line.kind != "gift"}
  - {id: pro-forma, when: doc.type == "proforma", posts: nothing}
`

// amountCases are documents, by type and content, and what becomes of them: by the rules above, and
// by the convention of their type.
var amountCases = []struct {
	title, kind, content string
	// rules and convention are a code, or how the document is posted: "entries", or the reason why it
	// has none.
	rules, convention string
	message           string
}{
	{
		"a payment with a total alone", "payment", `{"total": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ",
		"content.total",
	},
	{"a refund with a total alone", "refund", `{"total": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ", "content.amount"},
	{"a payout with a total alone", "payout", `{"total": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ", "content.amount"},
	{
		"a payment with lines alone", "payment", `{"lines": [{"kind": "item", "net": 100}]}`, "AMOUNT_NOT_READ",
		"AMOUNT_NOT_READ", "content.lines.net",
	},
	{
		"a payment with what arrived alone", "payment", `{"settled": {"amount": 100, "currency": "USD"}}`, "AMOUNT_MISSING",
		"AMOUNT_MISSING", "content.amount",
	},
	{"a fee alone", "payment", `{"fee": 35}`, "entries", "entries", ""},
	{
		"a delivery with net for cost", "delivery", `{"lines": [{"kind": "stock", "net": 100}]}`, "AMOUNT_NOT_READ",
		"AMOUNT_NOT_READ", "content.lines.cost",
	},
	{"a delivery of gifts", "delivery", `{"lines": [{"kind": "gift", "cost": 100}]}`, "AMOUNT_NOT_READ", "entries", "if"},
	{
		"a delivery of which a line has net for cost", "delivery",
		`{"lines": [{"kind": "stock", "cost": 40, "net": 100}, {"kind": "stock", "net": 100}]}`, "AMOUNT_NOT_READ",
		"AMOUNT_NOT_READ", "content.lines.cost",
	},
	{
		"a delivery with a line that the rule leaves out", "delivery",
		`{"lines": [{"kind": "stock", "cost": 40}, {"kind": "gift", "net": 100}]}`, "entries", "AMOUNT_NOT_READ", "",
	},
	{
		"a delivery with prices beside the costs", "delivery",
		`{"lines": [{"kind": "stock", "cost": 40, "net": 100}, {"kind": "stock"}], "total": 119}`, "entries", "entries",
		"",
	},
	{
		"a fee with a total for an amount", "payment", `{"fee": 35, "total": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ",
		"content.total",
	},
	{
		"a payment of an invoice's total", "payment",
		`{"amount": 5000, "total": 11900, "lines": [{"kind": "item", "net": 10000}]}`, "entries", "entries", "",
	},
	{
		"an invoice with a fee", "invoice", `{"lines": [{"kind": "item", "net": 100}], "payable": 100, "fee": 3}`,
		"AMOUNT_NOT_READ", "entries", "content.fee",
	},
	{
		"an invoice with a gift", "invoice",
		`{"lines": [{"kind": "item", "net": 100}, {"kind": "item", "net": 0, "cost": 5}], "payable": 100}`, "entries",
		"entries", "",
	},
	{
		"what is prepaid beside what is payable", "owed", `{"payable": 1900, "prepaid": 10000}`, "AMOUNT_NOT_READ",
		"entries", "content.prepaid",
	},
	{"a total beside what is payable", "owed", `{"payable": 1900, "total": 1900}`, "entries", "entries", ""},
	{
		"an invoice with a total alone", "invoice", `{"total": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ",
		"content.payable",
	},
	{
		"an invoice with an amount alone", "invoice", `{"amount": 11900}`, "AMOUNT_NOT_READ", "AMOUNT_NOT_READ",
		"content.amount",
	},
	{
		"an invoice without payable", "invoice", `{"lines": [{"kind": "item", "net": 100}], "total": 100}`, "UNBALANCED",
		"AMOUNT_NOT_READ", "",
	},
	{
		"an invoice with a base alone", "invoice", `{"taxes": [{"category": "VAT", "base": 100, "amount": 0}]}`,
		"AMOUNT_NOT_READ", "entries", "content.taxes.base",
	},
	{
		"an invoice with taxes alone", "invoice", `{"taxes": [{"category": "VAT", "amount": 19}]}`, "UNBALANCED",
		"AMOUNT_NOT_READ", "",
	},
	{
		"an invoice that is free", "invoice", `{"lines": [{"kind": "item", "net": 100}, {"kind": "discount", "net": -100}]}`,
		"entries", "entries", "",
	},
	{
		"an invoice that is paid", "invoice",
		`{"lines": [{"kind": "item", "net": 100}], "total": 100, "prepaid": 100, "payable": 0}`, "entries", "entries", "",
	},
	{"an unknown type with another field", "owed", `{"amount": 100}`, "AMOUNT_NOT_READ", "entries", "content.payable"},
	{"an invoice of nothing", "invoice", `{}`, "AMOUNT_MISSING", "AMOUNT_MISSING", "content.payable"},
	{
		"a payment of nothing", "payment", `{"counterparty": "Sample"}`, "AMOUNT_MISSING", "AMOUNT_MISSING",
		"content.amount",
	},
	{"an unknown type of nothing", "owed", `{"attributes": {"amount": "1"}}`, "AMOUNT_MISSING", "AMOUNT_MISSING", ""},
	{"a payment of zero", "payment", `{"amount": 0}`, "zero", "entries", ""},
	{"an invoice of zero", "invoice", `{"payable": 0, "total": 0}`, "zero", "entries", ""},
	{"an invoice of lines of zero", "invoice", `{"lines": [{"kind": "item", "net": 0}]}`, "zero", "entries", ""},
	{"zero on record", "payout", `{"zero": true}`, "zero", "entries", ""},
	{"a pro-forma invoice", "proforma", `{"payable": 100}`, "rule", "entries", ""},

	{
		"a negative credit note", "credit_note",
		`{"lines": [{"kind": "item", "net": -100}], "taxes": [{"category": "VAT", "amount": -19}], "payable": -119}`,
		"AMOUNT_SIGN", "AMOUNT_SIGN", "-1.19",
	},
	{
		"a credit note with negative lines", "credit_note", `{"lines": [{"kind": "item", "net": -100}], "payable": 100}`,
		"AMOUNT_SIGN", "AMOUNT_SIGN", "content.lines.net",
	},
	{
		"a credit note with negative taxes", "credit_note",
		`{"lines": [{"kind": "item", "net": 200}], "taxes": [{"category": "VAT", "amount": -19}], "payable": 181}`,
		"AMOUNT_SIGN", "AMOUNT_SIGN", "content.taxes.amount",
	},
	{
		"a credit note of a negative total", "credit_note", `{"total": -119}`, "AMOUNT_SIGN", "AMOUNT_SIGN",
		"content.total",
	},
	{
		"a credit note less a discount", "credit_note",
		`{"lines": [{"kind": "item", "net": 100}, {"kind": "discount", "net": -10}], "payable": 90}`, "entries", "entries",
		"",
	},
	{
		"a credit note with a retained tax", "credit_note",
		`{"lines": [{"kind": "item", "net": 100}], "taxes": [{"category": "IRPF", "amount": -15, "retained": true}], "payable": 85}`, "entries", "entries", "",
	},
	{"a negative refund", "refund", `{"amount": -100}`, "AMOUNT_SIGN", "AMOUNT_SIGN", "content.amount"},
	{"a negative payment", "payment", `{"amount": -100}`, "AMOUNT_SIGN", "AMOUNT_SIGN", "direction"},
	{"a negative payout", "payout", `{"amount": -100}`, "AMOUNT_SIGN", "AMOUNT_SIGN", "content.amount"},
	{
		"a payment that arrived as less than nothing", "payment",
		`{"amount": 100, "settled": {"amount": -90, "currency": "USD"}}`, "AMOUNT_SIGN", "AMOUNT_SIGN",
		"content.settled.amount",
	},
	{"a fee that is returned", "payment", `{"amount": 100, "fee": -3}`, "entries", "entries", ""},
	{
		"a negative invoice", "invoice",
		`{"lines": [{"kind": "item", "net": -100}], "taxes": [{"category": "VAT", "amount": -19}], "total": -119, "payable": -119}`, "entries", "entries", "",
	},
	{"a negative delivery", "delivery", `{"lines": [{"kind": "stock", "cost": -100}]}`, "entries", "entries", ""},
	{
		"an invoice that owes against its lines", "invoice", `{"lines": [{"kind": "item", "net": -100}], "payable": 100}`,
		"AMOUNT_SIGN", "AMOUNT_SIGN", "-1.00",
	},
	{
		"a retained tax that is charged", "invoice",
		`{"lines": [{"kind": "item", "net": 100}], "taxes": [{"category": "IRPF", "amount": 15, "retained": true}], "payable": 115}`, "AMOUNT_SIGN", "AMOUNT_SIGN", "retained",
	},
	{
		"an invoice that was paid too much", "invoice",
		`{"lines": [{"kind": "item", "net": 100}], "total": 100, "prepaid": 120, "payable": -20}`, "entries", "entries",
		"",
	},

	{
		"a total of another document", "invoice", `{"lines": [{"kind": "item", "net": 100}], "total": 999, "payable": 100}`,
		"TOTALS_DIFFER", "TOTALS_DIFFER", "8.99",
	},
	{
		"a total without what was prepaid", "invoice",
		`{"lines": [{"kind": "item", "net": 120}], "total": 100, "prepaid": 20, "payable": 100}`, "TOTALS_DIFFER",
		"TOTALS_DIFFER", "-0.20",
	},
	{
		"a total that is off and lines that are", "invoice",
		`{"lines": [{"kind": "item", "net": 50}], "total": 999, "payable": 100}`, "UNBALANCED", "TOTALS_DIFFER", "",
	},
	{
		"a total within the rounding limit", "invoice",
		`{"lines": [{"kind": "item", "net": 100}], "total": 101, "payable": 100}`, "entries", "TOTALS_DIFFER", "",
	},
	{
		"a total before its rounding", "invoice",
		`{"lines": [{"kind": "item", "net": 1247}], "total": 1247, "rounding": -2, "payable": 1245}`, "entries", "entries",
		"",
	},
	{
		"a total of 64 bits", "invoice",
		`{"lines": [{"kind": "item", "net": 100}], "total": -9223372036854775808, "payable": 100}`, "TOTALS_DIFFER",
		"TOTALS_DIFFER", "minor units of EUR",
	},
}

func amountDocument(t *testing.T, kind, content string) *models.Document {
	t.Helper()
	doc := &models.Document{
		ID: "d", Type: models.DocumentType(kind), Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: day,
	}
	require.NoError(t, strictjson.Document([]byte(content), &doc.Content, &doc.Content))
	return doc
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	rules := compile(t, byTheBook)
	chart := posting.NewAccounts(rules.Accounts()...)
	for _, c := range amountCases {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			doc := amountDocument(t, c.kind, c.content)
			impact, err := rules.Evaluate(doc, chart)
			switch c.rules {
			case "entries":
				require.NoError(t, err)
				assert.NotEmpty(t, impact.Entries)
				assert.Empty(t, impact.NoEntries)
			case "zero", "rule":
				require.NoError(t, err)
				assert.Empty(t, impact.Entries)
				assert.Equal(t, models.NoEntries(c.rules), impact.NoEntries)
			default:
				assert.Contains(t, requireError(t, err, models.ErrorCode(c.rules)).Message, c.message)
			}
			checked := posting.Check(doc, rules)
			switch models.ErrorCode(c.rules) {
			case "entries", "zero", "rule":
				require.NoError(t, checked)
			case models.CodeUnbalanced:
				if c.convention == "TOTALS_DIFFER" {
					_ = requireError(t, checked, models.CodeTotalsDiffer)
				} else {
					require.NoError(t, checked, "what does not balance may be imported: the rules can be mended")
				}
			default:
				assert.Equal(t, err, checked)
			}
		})
	}
}

// Without rules, or with rules that know no such document, the convention of its type counts.
func TestAmountsByConvention(t *testing.T) {
	t.Parallel()
	others := compile(t, `
ruleset: others
rules:
  - {id: r, when: doc.type == "other", posts: nothing}
`)
	for _, c := range amountCases {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			doc := amountDocument(t, c.kind, c.content)
			for _, rules := range []*posting.RuleSet{nil, others} {
				err := posting.Check(doc, rules)
				if c.convention == "entries" {
					require.NoError(t, err)
					continue
				}
				_ = requireError(t, err, models.ErrorCode(c.convention))
			}
			// What was read is written and read again as it is stored.
			stored, err := json.Marshal(doc.Content)
			require.NoError(t, err)
			again := amountDocument(t, c.kind, string(stored))
			assert.Equal(t, doc.Content, again.Content)
		})
	}
}

// A negative invoice is posted as a credit note of the same size.
func TestNegativeInvoiceMirrors(t *testing.T) {
	t.Parallel()
	rules := compile(t, byTheBook)
	chart := posting.NewAccounts(rules.Accounts()...)
	negative := amountDocument(t, "invoice",
		`{"lines": [{"kind": "item", "net": -100}], "taxes": [{"category": "VAT", "amount": -19}], "total": -119, "payable": -119}`)
	note := amountDocument(t, "credit_note",
		`{"lines": [{"kind": "item", "net": 100}], "taxes": [{"category": "VAT", "amount": 19}], "total": 119, "payable": 119}`)
	one, err := rules.Evaluate(negative, chart)
	require.NoError(t, err)
	other, err := rules.Evaluate(note, chart)
	require.NoError(t, err)
	assert.Equal(t, "receivable 0 1200 credit 119 EUR\nrevenue 1 4400 debit 100 EUR\ntax 1 3800 debit 19 EUR\n",
		entries(one))
	assert.Equal(t, entries(other), entries(one))
}

func TestRuleThatPostsNothingHasNothingElse(t *testing.T) {
	t.Parallel()
	_, err := posting.Compile([]byte(`
ruleset: r
rules:
  - {id: a, when: true, posts: nothing, negate: true, lines: [{id: x, side: debit, account: "1", amount: 1}]}
  - {id: b, when: false, like: a}
`))
	require.ErrorContains(t, err, "a rule that posts nothing has no lines")
	require.ErrorContains(t, err, "a rule that posts nothing has no negate")
	require.ErrorContains(t, err, `the rule "a" posts nothing; name one that has lines`)
	_, err = posting.Compile([]byte("ruleset: r\nrules:\n  - {id: a, when: true, posts: something}\n"))
	require.Error(t, err)
}

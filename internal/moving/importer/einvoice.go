package importer

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/accounting/posting"
	"github.com/daybook-dev/daybook/models"
)

// eInvoice is what UBL and CII have in common: the terms of EN 16931, whose numbers (BT-1 …) the
// comments give. An amount that the document does not state is nil.
type eInvoice struct {
	format  string // "ubl" or "cii"
	profile string // BT-24
	// number is BT-1, kind the code of UNTDID 1001 (BT-3), currency BT-5.
	number, kind, currency string
	issued, due            string // BT-2, BT-9
	// taxPoint is BT-7, delivered BT-72: the first of them that is there is the value date.
	taxPoint, delivered string
	// reference is BT-10, order BT-13, preceding BT-25.
	reference, order string
	preceding        []string
	seller, buyer    eParty
	items            []eItem
	// charges are those of the whole document.
	charges []eCharge
	taxes   []eTax
	// thirdParty are amounts that this invoice collects for others, as XRechnung's extension has
	// them.
	thirdParty []eCharge
	totals     eTotals
}

// eParty is the seller or the buyer. Its id is the first of the tax id, another registration and an
// identifier that is there.
type eParty struct{ id, name, country string }

// eTaxed is how something is taxed: scheme "VAT" or "GST", a code of UNTDID 5305 (S, Z, E, AE, K, G,
// O, L, M), and the rate.
type eTaxed struct {
	scheme, code string
	rate         models.Rate
}

// eItem is a line of the invoice. Its net (BT-131) has its charges in it.
type eItem struct {
	code, name string
	net        *big.Rat
	charges    []eCharge
	taxed      eTaxed
}

// eCharge is a charge, or an allowance, whose amount is negative. Its code is one of UNTDID 7161, or
// of UNTDID 5189.
type eCharge struct {
	allowance    bool
	amount       *big.Rat
	code, reason string
	taxed        eTaxed
}

// eTax is one row of the tax breakdown (BG-23).
type eTax struct {
	taxed        eTaxed
	base, amount *big.Rat
	// exemption is why no tax is charged: the text (BT-120), or else the code (BT-121).
	exemption string
}

// eTotals are BG-22: BT-106 to BT-115 in their order.
type eTotals struct {
	lines, allowances, charges, net, tax, gross, prepaid, rounding, payable *big.Rat
}

// eCreditNotes are the codes of UNTDID 1001 that stand for credit notes; eProforma is an offer in
// the form of an invoice.
var eCreditNotes = []string{"81", "83", "261", "262", "296", "308", "381", "396", "420", "458", "502", "503", "532"}

const eProforma = "325"

// imported converts the invoice. Its totals must follow from its parts.
func (e *eInvoice) imported() (Imported, error) {
	if e.kind == eProforma {
		return Imported{}, &NotBookableError{Schema: e.format, Type: e.kind}
	}
	out, err := e.head()
	if err != nil {
		return Imported{}, err
	}
	if err := e.check(); err != nil {
		return Imported{}, err
	}
	digits, _ := MinorDigits(e.currency)
	content := &out.Document.Content
	if content.Lines, err = e.lines(digits); err != nil {
		return Imported{}, err
	}
	minor := func(r *big.Rat) int64 {
		if r == nil {
			return 0
		}
		n, tooGreat := toInt64(roundHalfEven(scaled(r, digits)), r.FloatString(digits))
		err = cmp.Or(err, tooGreat)
		return n
	}
	for _, t := range e.taxes {
		content.Taxes = append(content.Taxes, models.Tax{
			Category: t.taxed.scheme, Code: t.taxed.code, Rate: t.taxed.rate, Exemption: t.exemption,
			Base: minor(t.base), Amount: minor(t.amount),
		})
	}
	content.Prepaid, content.Rounding, content.Payable =
		minor(e.totals.prepaid), minor(e.totals.rounding), minor(e.totals.payable)
	content.Total = minor(sum(e.totals.gross, sumOf(e.thirdParty)))
	if err != nil {
		return Imported{}, err
	}
	turnOver(&out.Document)
	content.Zero = !content.StatesAmount() // it has totals, so it states them
	return out, validateUnowned(out.Document)
}

// head fills in all but amounts.
func (e *eInvoice) head() (Imported, error) {
	out := Imported{
		SupplierID: cmp.Or(e.seller.id, e.seller.name), SupplierName: e.seller.name,
		Regime: strings.ToLower(e.seller.country),
	}
	issued, err := models.ParseDate(e.issued)
	if err != nil {
		return out, invalid("the issue date (BT-2): %v", err)
	}
	if err := models.CheckCurrency(e.currency, issued); err != nil {
		return out, invalid("the currency (BT-5): %w", err)
	}
	if e.number == "" {
		return out, invalid("the document has no number (BT-1)")
	}
	doc := &out.Document
	doc.Type, doc.Direction = models.DocumentInvoice, models.DirectionOut
	if slices.Contains(eCreditNotes, e.kind) {
		doc.Type = models.DocumentCreditNote
	}
	doc.Currency, doc.IssueDate = e.currency, issued
	if date := cmp.Or(e.taxPoint, e.delivered); date != "" {
		value, err := models.ParseDate(date)
		if err != nil {
			return out, invalid("the date of the tax or of the delivery (BT-7, BT-72): %v", err)
		}
		doc.ValueDate = &value
	}
	if e.due != "" {
		if doc.Content.DueDate, err = models.ParseDate(e.due); err != nil {
			return out, invalid("the due date (BT-9): %v", err)
		}
	}
	doc.ID = strings.Join([]string{e.kind, e.number, out.SupplierID}, "/")
	if len(doc.ID) > maxIDBytes {
		doc.ID = hashedID([]byte(doc.ID))
	}
	content := &doc.Content
	content.Number, content.Counterparty, content.Country = e.number, e.buyer.name, e.seller.country
	content.Source, content.RefersTo = e.format, e.preceding
	content.Attributes = map[string]string{}
	for name, value := range map[string]string{
		"type_code": e.kind, "profile": e.profile, "due_date": e.due, "reference": e.reference, "order": e.order,
		"preceding": strings.Join(e.preceding, ","),
	} {
		if value != "" {
			content.Attributes[name] = value
		}
	}
	return out, nil
}

// check compares each total with its parts, as EN 16931 defines them (BR-CO-10 to BR-CO-16), and
// fills in those that are not stated.
func (e *eInvoice) check() error {
	t := &e.totals
	var allowances, charges []eCharge
	for _, c := range e.charges {
		if c.allowance {
			allowances = append(allowances, c)
		} else {
			charges = append(charges, c)
		}
	}
	nets := new(big.Rat)
	for _, i := range e.items {
		nets.Add(nets, i.net)
	}
	taxes, bases := new(big.Rat), new(big.Rat)
	for _, x := range e.taxes {
		taxes.Add(taxes, x.amount)
		bases.Add(bases, x.base)
	}
	if len(e.items) == 0 {
		if len(e.taxes) == 0 {
			return invalid("the document has neither lines nor a tax breakdown, so nothing tells what was sold at which " +
				"rate; ask for a fuller profile")
		}
		nets = sum(bases, negated(sumOf(e.charges)))
	}
	for _, c := range []struct {
		total  **big.Rat
		term   string
		parts  string
		follow *big.Rat
	}{
		{&t.lines, "the lines' net total (BT-106)", "the lines add up to", nets},
		{&t.allowances, "the total of allowances (BT-107)", "they add up to", negated(sumOf(allowances))},
		{&t.charges, "the total of charges (BT-108)", "they add up to", sumOf(charges)},
		{&t.net, "the total without tax (BT-109)", "lines, allowances and charges add up to", sum(nets, sumOf(e.charges))},
		{&t.tax, "the total of tax (BT-110)", "the tax breakdown adds up to", taxes},
	} {
		if err := e.follows(c.total, c.term, c.parts, c.follow); err != nil {
			return err
		}
	}
	if err := e.follows(&t.gross, "the total with tax (BT-112)", "the total without tax and the tax are", sum(t.net, t.tax)); err != nil {
		return err
	}
	return e.follows(&t.payable, "the amount to pay (BT-115)", "total, prepaid amount and rounding come to",
		sum(t.gross, negated(t.prepaid), t.rounding, sumOf(e.thirdParty)))
}

// follows compares what the document states as a total with what follows from its parts. A total
// that it does not state becomes that.
func (e *eInvoice) follows(total **big.Rat, term, parts string, follow *big.Rat) error {
	if *total == nil {
		*total = follow
	}
	difference := new(big.Rat).Sub(*total, follow)
	if difference.Sign() == 0 {
		return nil
	}
	return invalid("%w", &posting.Error{Code: models.CodeTotalsDiffer, Message: term + " is stated as " + e.money(*total) +
		", but " + parts + " " + e.money(follow) + ": a difference of " + e.money(difference) +
		"; the sender has to correct the document"})
}

// money writes an amount of the document.
func (e *eInvoice) money(r *big.Rat) string { return moneyText(r, e.currency) }

// lines returns the items without their charges, those charges, and the charges of the whole
// document: together the total without tax. What is collected for others follows.
//
// A document without items, as some profiles of Factur-X allow, has one for each row of its tax
// breakdown, whose base has the charges in it.
func (e *eInvoice) lines(digits int) ([]models.Line, error) {
	var lines []models.Line
	var exact []*big.Rat
	add := func(line models.Line, net *big.Rat, taxed eTaxed) {
		line.Rate, line.Category, line.TaxCode = taxed.rate, taxed.scheme, taxed.code
		lines, exact = append(lines, line), append(exact, scaled(net, digits))
	}
	items := e.items
	if len(items) == 0 {
		for _, t := range e.taxes {
			items = append(items, eItem{net: sum(t.base, negated(sumOf(e.chargesOf(t.taxed)))), taxed: t.taxed})
		}
	}
	for _, i := range items {
		add(models.Line{Kind: "item", Code: i.code, Description: i.name}, sum(i.net, negated(sumOf(i.charges))), i.taxed)
		for _, c := range i.charges {
			add(models.Line{Kind: c.kind(), Code: cmp.Or(c.code, i.code), Description: c.reason}, c.amount, i.taxed)
		}
	}
	for _, c := range e.charges {
		add(models.Line{Kind: c.kind(), Code: c.code, Description: c.reason}, c.amount, c.taxed)
	}
	net, err := toInt64(roundHalfEven(scaled(e.totals.net, digits)), e.money(e.totals.net))
	if err != nil {
		return nil, err
	}
	for _, c := range e.thirdParty {
		add(models.Line{Kind: "outlay", Code: c.code, Description: c.reason}, c.amount, eTaxed{})
	}
	third, err := toInt64(roundHalfEven(scaled(sumOf(e.thirdParty), digits)), "")
	if err != nil {
		return nil, err
	}
	nets, err := allocate(exact, net+third)
	if err != nil {
		return nil, err
	}
	for i := range nets {
		lines[i].Net = nets[i]
	}
	return lines, nil
}

// chargesOf are the document's charges that are taxed in a way.
func (e *eInvoice) chargesOf(taxed eTaxed) []eCharge {
	return slices.DeleteFunc(slices.Clone(e.charges), func(c eCharge) bool { return c.taxed != taxed })
}

// kind is that of the line that the charge becomes.
func (c eCharge) kind() string {
	switch {
	case c.allowance:
		return "discount"
	case slices.Contains([]string{"DL", "FC", "SAA"}, c.code): // of UNTDID 7161: delivery, freight, shipping and handling
		return "shipping"
	}
	return "charge"
}

// sum adds amounts; what is not there counts nothing.
func sum(amounts ...*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, a := range amounts {
		if a != nil {
			total.Add(total, a)
		}
	}
	return total
}

func sumOf(charges []eCharge) *big.Rat {
	total := new(big.Rat)
	for _, c := range charges {
		total.Add(total, c.amount)
	}
	return total
}

func negated(r *big.Rat) *big.Rat { return new(big.Rat).Neg(sum(r)) }

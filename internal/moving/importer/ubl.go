package importer

import (
	"cmp"
	"encoding/xml"
	"io"
	"strings"
)

// The parts of UBL 2.1 (https://docs.oasis-open.org/ubl/UBL-2.1.html) that a booking needs. EN 16931
// and its uses (Peppol BIS Billing 3, XRechnung), and ZATCA's invoices, are written in it.

var ublSpaces = map[string]string{
	"urn:oasis:names:specification:ubl:schema:xsd:Invoice-2":                   "invoice",
	"urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2":                "credit",
	"urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2": "cac",
	"urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2":     "cbc",
	"urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100":             "cii",
}

type ublDocument struct {
	Profile   string `xml:"cbc CustomizationID"`
	Process   string `xml:"cbc ProfileID"`
	ID        string `xml:"cbc ID"`
	IssueDate string `xml:"cbc IssueDate"`
	DueDate   string `xml:"cbc DueDate"`
	InvoiceIs string `xml:"cbc InvoiceTypeCode"`
	CreditIs  string `xml:"cbc CreditNoteTypeCode"`
	TaxPoint  string `xml:"cbc TaxPointDate"`
	Currency  string `xml:"cbc DocumentCurrencyCode"`
	Reference string `xml:"cbc BuyerReference"`
	Order     ublID  `xml:"cac OrderReference"`
	Preceding []struct {
		Invoice    ublID `xml:"cac InvoiceDocumentReference"`
		CreditNote ublID `xml:"cac CreditNoteDocumentReference"`
	} `xml:"cac BillingReference"`
	Supplier ublSide `xml:"cac AccountingSupplierParty"`
	Customer ublSide `xml:"cac AccountingCustomerParty"`
	Delivery []struct {
		Date string `xml:"cbc ActualDeliveryDate"`
	} `xml:"cac Delivery"`
	Terms []struct {
		Due string `xml:"cbc PaymentDueDate"`
	} `xml:"cac PaymentMeans"`
	// ThirdParty are prepaid payments; XRechnung's extension has those here that are for others.
	ThirdParty []struct {
		ID     string    `xml:"cbc ID"`
		Amount xmlAmount `xml:"cbc PaidAmount"`
		Note   string    `xml:"cbc InstructionID"`
	} `xml:"cac PrepaidPayment"`
	Charges     []ublCharge   `xml:"cac AllowanceCharge"`
	Taxes       []ublTaxTotal `xml:"cac TaxTotal"`
	Withheld    []ublTaxTotal `xml:"cac WithholdingTaxTotal"`
	Totals      ublTotals     `xml:"cac LegalMonetaryTotal"`
	Lines       []ublLine     `xml:"cac InvoiceLine"`
	CreditLines []ublLine     `xml:"cac CreditNoteLine"`
}

type ublID struct {
	ID string `xml:"cbc ID"`
}

type ublSide struct {
	Party ublParty `xml:"cac Party"`
}

type ublParty struct {
	Identifications []ublID `xml:"cac PartyIdentification"`
	Names           []struct {
		Name string `xml:"cbc Name"`
	} `xml:"cac PartyName"`
	Address struct {
		Country struct {
			Code string `xml:"cbc IdentificationCode"`
		} `xml:"cac Country"`
	} `xml:"cac PostalAddress"`
	Taxes []struct {
		ID     string `xml:"cbc CompanyID"`
		Scheme ublID  `xml:"cac TaxScheme"`
	} `xml:"cac PartyTaxScheme"`
	Legal []struct {
		Name string `xml:"cbc RegistrationName"`
		ID   string `xml:"cbc CompanyID"`
	} `xml:"cac PartyLegalEntity"`
}

type ublCharge struct {
	Charge     string           `xml:"cbc ChargeIndicator"`
	Code       string           `xml:"cbc AllowanceChargeReasonCode"`
	Reasons    []string         `xml:"cbc AllowanceChargeReason"`
	Amount     xmlAmount        `xml:"cbc Amount"`
	Categories []ublTaxCategory `xml:"cac TaxCategory"`
}

type ublTaxCategory struct {
	Code          string   `xml:"cbc ID"`
	Percent       string   `xml:"cbc Percent"`
	ExemptionCode string   `xml:"cbc TaxExemptionReasonCode"`
	Exemption     []string `xml:"cbc TaxExemptionReason"`
	Scheme        ublID    `xml:"cac TaxScheme"`
}

type ublTaxTotal struct {
	Amount    xmlAmount `xml:"cbc TaxAmount"`
	Subtotals []struct {
		Base     xmlAmount      `xml:"cbc TaxableAmount"`
		Amount   xmlAmount      `xml:"cbc TaxAmount"`
		Percent  string         `xml:"cbc Percent"`
		Category ublTaxCategory `xml:"cac TaxCategory"`
	} `xml:"cac TaxSubtotal"`
}

type ublTotals struct {
	Lines      xmlAmount `xml:"cbc LineExtensionAmount"`
	Net        xmlAmount `xml:"cbc TaxExclusiveAmount"`
	Gross      xmlAmount `xml:"cbc TaxInclusiveAmount"`
	Allowances xmlAmount `xml:"cbc AllowanceTotalAmount"`
	Charges    xmlAmount `xml:"cbc ChargeTotalAmount"`
	Prepaid    xmlAmount `xml:"cbc PrepaidAmount"`
	Rounding   xmlAmount `xml:"cbc PayableRoundingAmount"`
	Payable    xmlAmount `xml:"cbc PayableAmount"`
}

type ublLine struct {
	Net     xmlAmount   `xml:"cbc LineExtensionAmount"`
	Charges []ublCharge `xml:"cac AllowanceCharge"`
	Item    struct {
		Name        string           `xml:"cbc Name"`
		Description []string         `xml:"cbc Description"`
		Seller      ublID            `xml:"cac SellersItemIdentification"`
		Standard    ublID            `xml:"cac StandardItemIdentification"`
		Categories  []ublTaxCategory `xml:"cac ClassifiedTaxCategory"`
	} `xml:"cac Item"`
}

// UBL converts an invoice or credit note in UBL 2.1. For a document of another kind the error is
// ErrNotBookable; for one that cannot be read or booked as it is, ErrInvalid.
func UBL(r io.Reader) (Imported, error) {
	var in ublDocument
	var credit bool
	err := readXML(r, ublSpaces, func(root xml.Name) (any, error) {
		credit = root.Space == "credit" && root.Local == "CreditNote"
		switch {
		case credit, root.Space == "invoice" && root.Local == "Invoice":
			return &in, nil
		case root.Space == "cii":
			return nil, invalid("it is a CII document; import it with: daybook import cii")
		}
		return nil, &NotBookableError{Schema: "UBL", Type: root.Local}
	})
	if err != nil {
		return Imported{}, err
	}
	e, err := in.invoice(credit)
	if err != nil {
		return Imported{}, err
	}
	return e.imported()
}

func (in *ublDocument) invoice(credit bool) (*eInvoice, error) {
	// UBL itself leaves it to the amounts to say the currency.
	n := &xmlNumbers{currency: cmp.Or(trimmed(in.Currency), in.Totals.Payable.Currency)}
	kind := "380"
	if credit {
		kind = "381"
	}
	e := &eInvoice{
		format: "ubl", profile: trimmed(in.Profile), number: trimmed(in.ID), currency: n.currency,
		kind:   cmp.Or(trimmed(in.InvoiceIs), trimmed(in.CreditIs), kind),
		issued: trimmed(in.IssueDate), due: trimmed(in.DueDate), taxPoint: trimmed(in.TaxPoint),
		reference: trimmed(in.Reference), order: trimmed(in.Order.ID),
		seller: in.Supplier.Party.party(), buyer: in.Customer.Party.party(),
	}
	for _, d := range in.Delivery {
		e.delivered = cmp.Or(e.delivered, trimmed(d.Date))
	}
	for _, m := range in.Terms {
		e.due = cmp.Or(e.due, trimmed(m.Due))
	}
	for _, p := range in.Preceding {
		if id := cmp.Or(trimmed(p.Invoice.ID), trimmed(p.CreditNote.ID)); id != "" {
			e.preceding = append(e.preceding, id)
		}
	}
	for _, l := range append(in.Lines, in.CreditLines...) {
		e.items = append(e.items, eItem{
			code: cmp.Or(trimmed(l.Item.Seller.ID), trimmed(l.Item.Standard.ID)),
			name: cmp.Or(trimmed(l.Item.Name), trimmed(strings.Join(l.Item.Description, " "))),
			net:  n.required(l.Net, "a line's net amount (BT-131)"), charges: ublCharges(l.Charges, n), taxed: taxedAs(l.Item.Categories, n),
		})
	}
	e.charges = ublCharges(in.Charges, n)
	if strings.Contains(e.profile, "extension:xrechnung") {
		for _, p := range in.ThirdParty {
			e.thirdParty = append(e.thirdParty, eCharge{
				code: trimmed(p.ID), reason: trimmed(p.Note), amount: n.required(p.Amount, "a third party payment (BT-DEX-002)"),
			})
		}
	}
	total := in.taxTotal(n.currency)
	for _, s := range total.Subtotals {
		category := s.Category
		category.Percent = cmp.Or(category.Percent, s.Percent)
		e.taxes = append(e.taxes, eTax{
			taxed: category.taxed(n), base: n.required(s.Base, "a tax's base (BT-116)"), amount: n.required(s.Amount, "a tax (BT-117)"),
			exemption: cmp.Or(trimmed(strings.Join(category.Exemption, " ")), trimmed(category.ExemptionCode)),
		})
	}
	t := &in.Totals
	e.totals = eTotals{
		lines: n.amount(t.Lines, "BT-106"), allowances: n.amount(t.Allowances, "BT-107"), charges: n.amount(t.Charges, "BT-108"),
		net: n.amount(t.Net, "BT-109"), tax: n.amount(total.Amount, "BT-110"), gross: n.amount(t.Gross, "BT-112"),
		prepaid: n.amount(t.Prepaid, "BT-113"), rounding: n.amount(t.Rounding, "BT-114"),
		payable: n.required(t.Payable, "the amount to pay (BT-115)"),
	}
	if len(in.Withheld) > 0 && n.err == nil {
		n.err = invalid("it withholds taxes (WithholdingTaxTotal), which EN 16931 does not know")
	}
	return e, n.err
}

// taxTotal is the total in the document's currency. A second one repeats it in that of the tax
// (BT-111), or, in ZATCA's invoices, in the same currency without the breakdown.
func (in *ublDocument) taxTotal(currency string) ublTaxTotal {
	var total ublTaxTotal
	for _, t := range in.Taxes {
		if (t.Amount.Currency == currency || t.Amount.Currency == "") && len(t.Subtotals) >= len(total.Subtotals) {
			total = t
		}
	}
	return total
}

func (p *ublParty) party() eParty {
	out := eParty{country: trimmed(p.Address.Country.Code)}
	for _, l := range p.Legal {
		out.name = cmp.Or(out.name, trimmed(l.Name))
	}
	for _, n := range p.Names {
		out.name = cmp.Or(out.name, trimmed(n.Name))
	}
	for _, t := range p.Taxes {
		if scheme := strings.ToUpper(t.Scheme.ID); strings.Contains(scheme, "VAT") || strings.Contains(scheme, "GST") {
			out.id = cmp.Or(out.id, trimmed(t.ID))
		}
	}
	for _, l := range p.Legal {
		out.id = cmp.Or(out.id, trimmed(l.ID))
	}
	for _, i := range p.Identifications {
		out.id = cmp.Or(out.id, trimmed(i.ID))
	}
	return out
}

func ublCharges(in []ublCharge, n *xmlNumbers) []eCharge {
	var out []eCharge
	for _, c := range in {
		charge := n.charge(c.Charge, c.Amount)
		charge.code, charge.reason = trimmed(c.Code), trimmed(strings.Join(c.Reasons, " "))
		charge.taxed = taxedAs(c.Categories, n)
		out = append(out, charge)
	}
	return out
}

// taxedAs is the first of the categories; EN 16931 allows no more.
func taxedAs(categories []ublTaxCategory, n *xmlNumbers) eTaxed {
	if len(categories) == 0 {
		return eTaxed{}
	}
	return categories[0].taxed(n)
}

func (c *ublTaxCategory) taxed(n *xmlNumbers) eTaxed {
	return eTaxed{
		scheme: cmp.Or(strings.ToUpper(trimmed(c.Scheme.ID)), "VAT"), code: trimmed(c.Code), rate: n.percent(c.Percent, "a tax rate"),
	}
}

func trimmed(text string) string { return strings.TrimSpace(text) }

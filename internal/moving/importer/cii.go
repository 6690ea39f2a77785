package importer

import (
	"cmp"
	"encoding/xml"
	"io"
	"strings"
)

// The parts of UN/CEFACT's Cross Industry Invoice (D16B and D22B) that a booking needs. EN 16931,
// XRechnung, Factur-X and ZUGFeRD 2 are written in it.

var ciiSpaces = map[string]string{
	"urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100":                       "rsm",
	"urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100": "ram",
	"urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100":                        "udt",
	"urn:un:unece:uncefact:data:standard:QualifiedDataType:100":                          "qdt",
	"urn:ferd:CrossIndustryDocument:invoice:1p0":                                         "zugferd1",
	"urn:oasis:names:specification:ubl:schema:xsd:Invoice-2":                             "ubl",
	"urn:oasis:names:specification:ubl:schema:xsd:CreditNote-2":                          "ubl",
}

type ciiDocument struct {
	Context struct {
		Profile struct {
			ID string `xml:"ram ID"`
		} `xml:"ram GuidelineSpecifiedDocumentContextParameter"`
	} `xml:"rsm ExchangedDocumentContext"`
	Head struct {
		ID     string  `xml:"ram ID"`
		Kind   string  `xml:"ram TypeCode"`
		Issued ciiDate `xml:"ram IssueDateTime"`
	} `xml:"rsm ExchangedDocument"`
	Trade struct {
		Lines     []ciiLine `xml:"ram IncludedSupplyChainTradeLineItem"`
		Agreement struct {
			Reference string   `xml:"ram BuyerReference"`
			Seller    ciiParty `xml:"ram SellerTradeParty"`
			Buyer     ciiParty `xml:"ram BuyerTradeParty"`
			Order     ciiRef   `xml:"ram BuyerOrderReferencedDocument"`
		} `xml:"ram ApplicableHeaderTradeAgreement"`
		Delivery struct {
			Event struct {
				At ciiDate `xml:"ram OccurrenceDateTime"`
			} `xml:"ram ActualDeliverySupplyChainEvent"`
		} `xml:"ram ApplicableHeaderTradeDelivery"`
		Money ciiMoney `xml:"ram ApplicableHeaderTradeSettlement"`
	} `xml:"rsm SupplyChainTradeTransaction"`
}

type ciiDate struct {
	Time ciiDay `xml:"udt DateTimeString"`
	// Date stands instead of a time where only a day can be meant.
	Date ciiDay `xml:"udt DateString"`
}

type ciiDay struct {
	Text   string `xml:",chardata"`
	Format string `xml:"format,attr"`
}

type ciiRef struct {
	ID string `xml:"ram IssuerAssignedID"`
}

type ciiParty struct {
	IDs       []string `xml:"ram ID"`
	GlobalIDs []string `xml:"ram GlobalID"`
	Name      string   `xml:"ram Name"`
	Legal     struct {
		ID string `xml:"ram ID"`
	} `xml:"ram SpecifiedLegalOrganization"`
	Address struct {
		Country string `xml:"ram CountryID"`
	} `xml:"ram PostalTradeAddress"`
	Taxes []struct {
		ID struct {
			Text   string `xml:",chardata"`
			Scheme string `xml:"schemeID,attr"`
		} `xml:"ram ID"`
	} `xml:"ram SpecifiedTaxRegistration"`
}

type ciiLine struct {
	Document struct {
		// Status is INFORMATION or GROUP for lines of the profile EXTENDED that the totals leave out.
		Status string `xml:"ram LineStatusReasonCode"`
	} `xml:"ram AssociatedDocumentLineDocument"`
	Product struct {
		GlobalID string `xml:"ram GlobalID"`
		SellerID string `xml:"ram SellerAssignedID"`
		Name     string `xml:"ram Name"`
	} `xml:"ram SpecifiedTradeProduct"`
	Money struct {
		Taxes   []ciiTax    `xml:"ram ApplicableTradeTax"`
		Charges []ciiCharge `xml:"ram SpecifiedTradeAllowanceCharge"`
		Totals  struct {
			Net xmlAmount `xml:"ram LineTotalAmount"`
		} `xml:"ram SpecifiedTradeSettlementLineMonetarySummation"`
	} `xml:"ram SpecifiedLineTradeSettlement"`
}

type ciiTax struct {
	Amount        xmlAmount `xml:"ram CalculatedAmount"`
	Scheme        string    `xml:"ram TypeCode"`
	Exemption     string    `xml:"ram ExemptionReason"`
	Base          xmlAmount `xml:"ram BasisAmount"`
	Code          string    `xml:"ram CategoryCode"`
	ExemptionCode string    `xml:"ram ExemptionReasonCode"`
	Point         ciiDate   `xml:"ram TaxPointDate"`
	Percent       string    `xml:"ram RateApplicablePercent"`
}

type ciiCharge struct {
	Charge struct {
		Text string `xml:"udt Indicator"`
	} `xml:"ram ChargeIndicator"`
	Amount xmlAmount `xml:"ram ActualAmount"`
	Code   string    `xml:"ram ReasonCode"`
	Reason string    `xml:"ram Reason"`
	Taxes  []ciiTax  `xml:"ram CategoryTradeTax"`
}

type ciiMoney struct {
	Currency string      `xml:"ram InvoiceCurrencyCode"`
	Taxes    []ciiTax    `xml:"ram ApplicableTradeTax"`
	Charges  []ciiCharge `xml:"ram SpecifiedTradeAllowanceCharge"`
	// Shipping are charges of the profile EXTENDED.
	Shipping []struct {
		Reason string    `xml:"ram Description"`
		Amount xmlAmount `xml:"ram AppliedAmount"`
		Taxes  []ciiTax  `xml:"ram AppliedTradeTax"`
	} `xml:"ram SpecifiedLogisticsServiceCharge"`
	Terms []struct {
		Due ciiDate `xml:"ram DueDateDateTime"`
	} `xml:"ram SpecifiedTradePaymentTerms"`
	Totals struct {
		Lines      xmlAmount   `xml:"ram LineTotalAmount"`
		Charges    xmlAmount   `xml:"ram ChargeTotalAmount"`
		Allowances xmlAmount   `xml:"ram AllowanceTotalAmount"`
		Net        []xmlAmount `xml:"ram TaxBasisTotalAmount"`
		Tax        []xmlAmount `xml:"ram TaxTotalAmount"`
		Rounding   xmlAmount   `xml:"ram RoundingAmount"`
		Gross      []xmlAmount `xml:"ram GrandTotalAmount"`
		Prepaid    xmlAmount   `xml:"ram TotalPrepaidAmount"`
		Payable    xmlAmount   `xml:"ram DuePayableAmount"`
	} `xml:"ram SpecifiedTradeSettlementHeaderMonetarySummation"`
	Preceding []ciiRef `xml:"ram InvoiceReferencedDocument"`
}

// CII converts an invoice or credit note in UN/CEFACT's format, as UBL does.
func CII(r io.Reader) (Imported, error) {
	var in ciiDocument
	err := readXML(r, ciiSpaces, func(root xml.Name) (any, error) {
		switch {
		case root == xml.Name{Space: "rsm", Local: "CrossIndustryInvoice"}:
			return &in, nil
		case root.Space == "zugferd1":
			return nil, invalid("it is a document of ZUGFeRD 1.0, which EN 16931 has replaced; ask for ZUGFeRD 2 or Factur-X")
		case root.Space == "ubl":
			return nil, invalid("it is a UBL document; import it with: daybook import ubl")
		}
		return nil, &NotBookableError{Schema: "CII", Type: root.Local}
	})
	if err != nil {
		return Imported{}, err
	}
	e, err := in.invoice()
	if err != nil {
		return Imported{}, err
	}
	return e.imported()
}

func (in *ciiDocument) invoice() (*eInvoice, error) {
	s, agreement := &in.Trade.Money, &in.Trade.Agreement
	n := &xmlNumbers{currency: trimmed(s.Currency)}
	e := &eInvoice{
		format: "cii", profile: trimmed(in.Context.Profile.ID), number: trimmed(in.Head.ID), kind: cmp.Or(trimmed(in.Head.Kind), "380"),
		currency: n.currency, issued: in.Head.Issued.day(), delivered: in.Trade.Delivery.Event.At.day(),
		reference: trimmed(agreement.Reference), order: trimmed(agreement.Order.ID),
		seller: agreement.Seller.party(), buyer: agreement.Buyer.party(),
	}
	for _, t := range s.Terms {
		e.due = cmp.Or(e.due, t.Due.day())
	}
	for _, p := range s.Preceding {
		if id := trimmed(p.ID); id != "" {
			e.preceding = append(e.preceding, id)
		}
	}
	for _, l := range in.Trade.Lines {
		if status := trimmed(l.Document.Status); status == "INFORMATION" || status == "GROUP" {
			continue
		}
		e.items = append(e.items, eItem{
			code: cmp.Or(trimmed(l.Product.SellerID), trimmed(l.Product.GlobalID)), name: trimmed(l.Product.Name),
			net:     n.required(l.Money.Totals.Net, "a line's net amount (BT-131)"),
			charges: ciiCharges(l.Money.Charges, n), taxed: ciiTaxed(l.Money.Taxes, n),
		})
	}
	e.charges = ciiCharges(s.Charges, n)
	for _, c := range s.Shipping {
		e.charges = append(e.charges, eCharge{
			code: "DL", reason: trimmed(c.Reason), amount: n.required(c.Amount, "a logistics charge"), taxed: ciiTaxed(c.Taxes, n),
		})
	}
	for _, t := range s.Taxes {
		e.taxPoint = cmp.Or(e.taxPoint, t.Point.day())
		e.taxes = append(e.taxes, eTax{
			taxed: t.taxed(n), base: n.required(t.Base, "a tax's base (BT-116)"), amount: n.required(t.Amount, "a tax (BT-117)"),
			exemption: cmp.Or(trimmed(t.Exemption), trimmed(t.ExemptionCode)),
		})
	}
	t := &s.Totals
	e.totals = eTotals{
		lines: n.amount(t.Lines, "BT-106"), allowances: n.amount(t.Allowances, "BT-107"), charges: n.amount(t.Charges, "BT-108"),
		net: n.amount(in.own(t.Net), "BT-109"), tax: n.amount(in.own(t.Tax), "BT-110"), gross: n.amount(in.own(t.Gross), "BT-112"),
		prepaid: n.amount(t.Prepaid, "BT-113"), rounding: n.amount(t.Rounding, "BT-114"),
		payable: n.required(t.Payable, "the amount to pay (BT-115)"),
	}
	return e, n.err
}

// own is the amount in the document's currency; another one is in that of the tax (BT-111).
func (in *ciiDocument) own(amounts []xmlAmount) xmlAmount {
	for _, a := range amounts {
		if a.Currency == "" || a.Currency == trimmed(in.Trade.Money.Currency) {
			return a
		}
	}
	return xmlAmount{}
}

func (p *ciiParty) party() eParty {
	out := eParty{name: trimmed(p.Name), country: trimmed(p.Address.Country)}
	for _, t := range p.Taxes {
		if trimmed(t.ID.Scheme) == "VA" {
			out.id = cmp.Or(out.id, trimmed(t.ID.Text))
		}
	}
	out.id = cmp.Or(out.id, trimmed(p.Legal.ID))
	for _, id := range append(p.IDs, p.GlobalIDs...) {
		out.id = cmp.Or(out.id, trimmed(id))
	}
	return out
}

func ciiCharges(in []ciiCharge, n *xmlNumbers) []eCharge {
	var out []eCharge
	for _, c := range in {
		charge := n.charge(c.Charge.Text, c.Amount)
		charge.code, charge.reason, charge.taxed = trimmed(c.Code), trimmed(c.Reason), ciiTaxed(c.Taxes, n)
		out = append(out, charge)
	}
	return out
}

// ciiTaxed is the first of the taxes; EN 16931 allows no more.
func ciiTaxed(taxes []ciiTax, n *xmlNumbers) eTaxed {
	if len(taxes) == 0 {
		return eTaxed{}
	}
	return taxes[0].taxed(n)
}

func (t *ciiTax) taxed(n *xmlNumbers) eTaxed {
	return eTaxed{
		scheme: cmp.Or(strings.ToUpper(trimmed(t.Scheme)), "VAT"), code: trimmed(t.Code), rate: n.percent(t.Percent, "a tax rate"),
	}
}

// day is the date as YYYY-MM-DD; what is written in no known way stays as it is, for the error.
func (d ciiDate) day() string {
	day := d.Time
	if trimmed(day.Text) == "" {
		day = d.Date
	}
	text := trimmed(day.Text)
	if len(text) == len("20060102") && allDigits(text) {
		return text[:4] + "-" + text[4:6] + "-" + text[6:]
	}
	return text
}

package importer

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
)

// Imported is a converted document with what the file says about the organization that issued it.
type Imported struct {
	// Document lacks its OrgID, which the caller sets. Its Direction is "out": the organization is
	// the supplier; a caller that imports for the customer sets "in" (for a payment the direction is
	// that of the money). Its ID is the same each time the same document is imported.
	Document models.Document
	// SupplierID is the supplier's tax id with the country before it, or else another identity or the
	// name.
	SupplierID string
	// SupplierName is the supplier's name, possibly empty.
	SupplierName string
	// Regime is the tax country in lower case (ISO 3166-1 alpha-2), empty if the file names none.
	Regime string
}

// For is the document for the books of an organization: with DirectionOut it is the supplier's, with
// DirectionIn the customer's. What the supplier issued the customer received; money that came to the
// supplier left the customer.
func (in Imported) For(org string, direction models.Direction) models.Document {
	d := in.Document
	d.OrgID = org
	if direction == models.DirectionIn {
		if d.Direction == models.DirectionOut {
			d.Direction = models.DirectionIn
		} else {
			d.Direction = models.DirectionOut
		}
		d.Content.Counterparty = in.SupplierName
	}
	return d
}

// GOBL converts an invoice, credit note or payment in GOBL's JSON format, bare or in an envelope.
// For a document of another kind the error is ErrNotBookable; for one that cannot be read or booked
// as it is, ErrInvalid.
func GOBL(data []byte) (Imported, error) {
	data, err := bom.Trim(data)
	if err != nil {
		return Imported{}, invalid("%v", err)
	}
	body, header, err := goblBody(data)
	if err != nil {
		return Imported{}, err
	}
	kind, ok := strings.CutPrefix(header.Schema, goblPrefix)
	if !ok {
		return Imported{}, invalid("$schema is %.100q; a GOBL document has one that starts with %s", header.Schema,
			goblPrefix)
	}
	if kind != "bill/invoice" && kind != "bill/payment" {
		return Imported{}, &NotBookableError{Schema: header.Schema, Type: header.Type}
	}
	var in goblDocument
	if err := json.Unmarshal(body, &in); err != nil {
		return Imported{}, invalid("%v", err)
	}
	out, err := goblCommon(&in, body)
	if err != nil {
		return Imported{}, err
	}
	if kind == "bill/invoice" {
		err = goblInvoice(&in, &out.Document)
	} else {
		err = goblPayment(&in, &out.Document)
	}
	if err != nil {
		return Imported{}, err
	}
	turnOver(&out.Document)
	content := &out.Document.Content
	content.Zero = !content.StatesAmount() // it has totals, so it states them
	if err := validateUnowned(out.Document); err != nil {
		return Imported{}, err
	}
	return out, nil
}

// turnOver changes the sign of all amounts of a credit note that is negative as a whole: Daybook's
// are positive.
func turnOver(doc *models.Document) {
	c := &doc.Content
	if doc.Type != models.DocumentCreditNote || cmp.Or(c.Total, c.Payable) >= 0 {
		return
	}
	for i := range c.Lines {
		c.Lines[i].Net, c.Lines[i].Cost = -c.Lines[i].Net, -c.Lines[i].Cost
	}
	for i := range c.Taxes {
		c.Taxes[i].Base, c.Taxes[i].Amount = -c.Taxes[i].Base, -c.Taxes[i].Amount
	}
	c.Total, c.Prepaid, c.Payable, c.Rounding = -c.Total, -c.Prepaid, -c.Payable, -c.Rounding
}

// goblBody unwraps an envelope.
func goblBody(data []byte) (json.RawMessage, goblHeader, error) {
	var header goblHeader
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, header, invalid("it is not JSON: %v", err)
	}
	if header.Schema != goblPrefix+"envelope" {
		return data, header, nil
	}
	body := header.Doc
	header = goblHeader{}
	if err := json.Unmarshal(body, &header); err != nil {
		return nil, header, invalid("the envelope has no readable doc: %v", err)
	}
	return body, header, nil
}

// goblCommon fills what invoices and payments share.
func goblCommon(in *goblDocument, body []byte) (Imported, error) {
	var out Imported
	issued, err := models.ParseDate(in.IssueDate)
	if err != nil {
		return out, invalid("issue_date: %v", err)
	}
	if err := models.CheckCurrency(in.Currency, issued); err != nil {
		return out, invalid("currency: %w", err)
	}
	out.Document = models.Document{Direction: models.DirectionOut, Currency: in.Currency, IssueDate: issued}
	if in.ValueDate != "" {
		value, err := models.ParseDate(in.ValueDate)
		if err != nil {
			return out, invalid("value_date: %v", err)
		}
		out.Document.ValueDate = &value
	}
	out.SupplierID, out.SupplierName = goblIdentity(in.Supplier)
	country := in.Regime
	if country == "" && in.Supplier != nil && in.Supplier.TaxID != nil {
		country = in.Supplier.TaxID.Country
	}
	if country == "EL" { // the tax prefix of Greece, whose ISO code is GR
		country = "GR"
	}
	out.Regime = strings.ToLower(country)
	content := &out.Document.Content
	content.Country = country
	content.Source = "gobl"
	content.Number = strings.Trim(in.Series+"-"+in.Code, "-")
	if in.Customer != nil {
		content.Counterparty = in.Customer.Name
	}
	content.Attributes = map[string]string{"gobl_type": in.Type}
	if len(in.Tags) > 0 {
		content.Attributes["gobl_tags"] = strings.Join(in.Tags, ",")
	}
	if err := goblPlace(in, content); err != nil {
		return out, err
	}
	out.Document.ID, err = goblID(in, out.SupplierID, body)
	return out, err
}

// goblPlace fills in when the document is due, at the latest, and to which others it refers.
func goblPlace(in *goblDocument, content *models.Content) error {
	for _, r := range in.Preceding {
		content.RefersTo = append(content.RefersTo, r.number())
	}
	for _, l := range in.Lines {
		if l.Document != nil {
			content.RefersTo = append(content.RefersTo, l.Document.number())
		}
	}
	content.RefersTo = slices.DeleteFunc(content.RefersTo, func(number string) bool { return number == "" })
	if in.Payment == nil || in.Payment.Terms == nil {
		return nil
	}
	for _, d := range in.Payment.Terms.DueDates {
		due, err := models.ParseDate(d.Date)
		if err != nil {
			return invalid("payment.terms.due_dates: %v", err)
		}
		if content.DueDate.Before(due) {
			content.DueDate = due
		}
	}
	return nil
}

// number is that of the document, as goblCommon writes it.
func (r *goblReference) number() string { return strings.Trim(r.Series+"-"+r.Code, "-") }

// goblID is the document's uuid; else its number with its supplier; else a hash of its content.
func goblID(in *goblDocument, supplier string, body []byte) (string, error) {
	switch {
	case in.UUID != "":
		return in.UUID, nil
	case in.Code != "" && supplier != "":
		id := strings.Join([]string{in.Type, in.Series, in.Code, supplier}, "/")
		if len(id) <= maxIDBytes {
			return id, nil
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return "", invalid("%v", err)
	}
	return hashedID(compact.Bytes()), nil
}

// hashedID stands for what is too long to be an id.
func hashedID(of []byte) string {
	sum := sha256.Sum256(of)
	return "sha256-" + hex.EncodeToString(sum[:])
}

func goblIdentity(p *goblParty) (id, name string) {
	if p == nil {
		return "", ""
	}
	if p.TaxID != nil && p.TaxID.Code != "" {
		return p.TaxID.Country + p.TaxID.Code, p.Name
	}
	for _, i := range p.Identities {
		if i.Code != "" {
			return i.Code, p.Name
		}
	}
	return p.Name, p.Name
}

// goblPayment converts a receipt (money came in) or an advice (money went out).
func goblPayment(in *goblDocument, doc *models.Document) error {
	switch in.Type {
	case "receipt":
		doc.Direction = models.DirectionIn
	case "advice":
		doc.Direction = models.DirectionOut
	default: // a request moves no money
		return &NotBookableError{Schema: in.Schema, Type: in.Type}
	}
	doc.Type = models.DocumentPayment
	digits, _ := MinorDigits(in.Currency)
	if in.Total == "" {
		return invalid("the payment has no total")
	}
	amount, err := in.Total.minor(digits)
	doc.Content.Amount = amount
	return err
}

// goblInvoice converts an invoice of any type that is booked.
func goblInvoice(in *goblDocument, doc *models.Document) error {
	switch in.Type {
	case "credit-note":
		doc.Type = models.DocumentCreditNote
	case "proforma": // an offer in the form of an invoice
		return &NotBookableError{Schema: in.Schema, Type: in.Type}
	default: // standard, corrective, debit-note, other: attribute gobl_type tells them apart
		doc.Type = models.DocumentInvoice
	}
	if in.Totals == nil {
		return invalid("the invoice has no totals; calculate it with GOBL first")
	}
	digits, _ := MinorDigits(in.Currency)
	content := &doc.Content
	var err error
	if content.Lines, err = goblLines(in, digits); err != nil {
		return err
	}
	if content.Taxes, err = goblTaxes(in.Totals, digits); err != nil {
		return err
	}
	if content.Total, err = in.Totals.Payable.minor(digits); err != nil {
		return err
	}
	if content.Prepaid, err = in.Totals.Advance.minor(digits); err != nil {
		return err
	}
	// GOBL leaves due out when nothing was paid in advance.
	if content.Payable, err = cmp.Or(in.Totals.Due, in.Totals.Payable).minor(digits); err != nil {
		return err
	}
	content.Rounding, err = in.Totals.Rounding.minor(digits)
	return err
}

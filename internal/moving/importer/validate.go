package importer

import (
	"cmp"
	"math"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// maxIDBytes bounds the ids that other tables refer to.
const maxIDBytes = 255

// Validate checks what every document must have before it is stored: its ids, a type, a direction,
// a known currency and an issue date. Errors wrap ErrInvalid. Whether the document can be posted is
// decided by the rules.
func Validate(doc models.Document) error {
	if err := validateID("org_id", doc.OrgID); err != nil {
		return err
	}
	return validateUnowned(doc)
}

func validateID(name, value string) error {
	switch {
	case value == "":
		return invalid("%s is missing; every document needs one", name)
	case len(value) > maxIDBytes:
		return invalid("%s has %d bytes; at most %d are allowed", name, len(value), maxIDBytes)
	}
	return nil
}

// validateUnowned is Validate for a document whose organization is not known yet.
func validateUnowned(doc models.Document) error {
	if err := cmp.Or(validateID("id", doc.ID), validateID("type", string(doc.Type))); err != nil {
		return err
	}
	if doc.Direction != models.DirectionOut && doc.Direction != models.DirectionIn {
		return invalid("direction is %.20q; want \"out\" or \"in\"", doc.Direction)
	}
	if doc.IssueDate.IsZero() {
		return invalid("issue_date is missing; write it as YYYY-MM-DD")
	}
	if err := doc.IssueDate.Check(); err != nil {
		return invalid("issue_date: %v", err)
	}
	if doc.ValueDate != nil {
		if err := doc.ValueDate.Check(); err != nil {
			return invalid("value_date: %v", err)
		}
	}
	c := &doc.Content
	issued := doc.IssueDate
	if c.Journal != nil && c.Journal.YearEnd {
		issued = models.Date{} // as for its entries: see posting.Journal
	}
	if err := models.CheckCurrency(doc.Currency, issued); err != nil {
		return invalid("currency: %w", err)
	}
	if err := c.DueDate.Check(); err != nil {
		return invalid("due_date: %v", err)
	}
	if c.Settled != nil {
		if err := models.CheckCurrency(c.Settled.Currency, doc.IssueDate); err != nil {
			return invalid("settled.currency: %w", err)
		}
	}
	for _, t := range c.Taxes {
		// No tax can be turned to the other side that has this amount.
		if t.Amount == math.MinInt64 {
			return invalid("the tax amount %d is out of range", t.Amount)
		}
	}
	if err := checkDimensions(c); err != nil {
		return err
	}
	if hasNUL(doc) {
		return invalid("a text contains the character U+0000, which PostgreSQL cannot store; remove it")
	}
	return nil
}

// checkDimensions refuses dimensions that no entry can have.
func checkDimensions(c *models.Content) error {
	if err := c.Dimensions.Check(); err != nil {
		return invalid("dimensions: %w", err)
	}
	for i := range c.Lines {
		if err := c.Lines[i].Dimensions.Check(); err != nil {
			return invalid("line %d: %w", i+1, err)
		}
	}
	if c.Journal == nil {
		return nil
	}
	for i := range c.Journal.Entries {
		if err := c.Journal.Entries[i].Dimensions.Check(); err != nil {
			return invalid("entry %d: %w", i+1, err)
		}
	}
	return nil
}

// hasNUL reports whether any text of the document contains the one character that neither text nor
// jsonb can hold.
func hasNUL(doc models.Document) bool {
	c := &doc.Content
	texts := []string{doc.OrgID, doc.ID, string(doc.Type), c.Number, c.Counterparty, c.Country, c.Source}
	for _, l := range c.Lines {
		texts = append(texts, l.Kind, l.Code, l.Description, l.Category, l.TaxCode)
	}
	for _, t := range c.Taxes {
		texts = append(texts, t.Category, t.Code, t.Exemption)
	}
	for k, v := range c.Attributes {
		texts = append(texts, k, v)
	}
	texts = append(texts, c.RefersTo...)
	if j := c.Journal; j != nil {
		texts = append(texts, j.Reason, j.By)
		for _, e := range j.Entries {
			texts = append(texts, e.Account, e.Note)
		}
	}
	for _, t := range texts {
		if strings.IndexByte(t, 0) >= 0 {
			return true
		}
	}
	return false
}

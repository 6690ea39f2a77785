package importer

import "encoding/json"

// The parts of the GOBL format (https://docs.gobl.org) that a booking needs. Fields that are not
// here are ignored: GOBL adds some with every version.

const goblPrefix = "https://gobl.org/draft-0/"

type goblHeader struct {
	Schema string          `json:"$schema"`
	Doc    json.RawMessage `json:"doc"` // of an envelope
	Type   string          `json:"type"`
}

type goblDocument struct {
	Schema    string   `json:"$schema"`
	Regime    string   `json:"$regime"`
	Tags      []string `json:"$tags"`
	UUID      string   `json:"uuid"`
	Type      string   `json:"type"`
	Series    string   `json:"series"`
	Code      string   `json:"code"`
	IssueDate string   `json:"issue_date"`
	ValueDate string   `json:"value_date"`
	Currency  string   `json:"currency"`
	Tax       *struct {
		PricesInclude string `json:"prices_include"`
	} `json:"tax"`
	// Preceding are the invoices that it corrects or replaces.
	Preceding []goblReference `json:"preceding"`
	// Payment has the terms of an invoice.
	Payment *struct {
		Terms *struct {
			DueDates []struct {
				Date string `json:"date"`
			} `json:"due_dates"`
		} `json:"terms"`
	} `json:"payment"`
	Supplier  *goblParty   `json:"supplier"`
	Customer  *goblParty   `json:"customer"`
	Lines     []goblLine   `json:"lines"`
	Charges   []goblCharge `json:"charges"`
	Discounts []goblCharge `json:"discounts"`
	Outlays   []goblCharge `json:"outlays"` // of older versions; added to the payable amount, without tax
	Totals    *goblTotals  `json:"totals"`
	Total     decimal      `json:"total"` // of a payment
}

// goblReference names another document.
type goblReference struct {
	Series string `json:"series"`
	Code   string `json:"code"`
}

type goblParty struct {
	Name  string `json:"name"`
	TaxID *struct {
		Country string `json:"country"`
		Code    string `json:"code"`
	} `json:"tax_id"`
	Identities []struct {
		Code string `json:"code"`
	} `json:"identities"`
}

type goblLine struct {
	// Document is what a line of a payment pays.
	Document *goblReference `json:"document"`
	Item     struct {
		Ref  string `json:"ref"`
		Name string `json:"name"`
	} `json:"item"`
	Taxes []goblCombo `json:"taxes"`
	Total decimal     `json:"total"`
}

type goblCharge struct {
	Key         string      `json:"key"`
	Code        string      `json:"code"`
	Reason      string      `json:"reason"`
	Description string      `json:"description"`
	Amount      decimal     `json:"amount"`
	Taxes       []goblCombo `json:"taxes"`
}

// goblCombo is one tax of a line.
type goblCombo struct {
	Category string  `json:"cat"`
	Percent  decimal `json:"percent"`
}

type goblTotals struct {
	Total    decimal `json:"total"`
	Rounding decimal `json:"rounding"`
	Payable  decimal `json:"payable"`
	Advance  decimal `json:"advance"`
	Due      decimal `json:"due"`
	Taxes    *struct {
		Categories []goblCategory `json:"categories"`
	} `json:"taxes"`
}

type goblCategory struct {
	Code        string     `json:"code"`
	Retained    bool       `json:"retained"`
	Informative bool       `json:"informative"` // reported, but no part of the totals
	Rates       []goblRate `json:"rates"`
}

type goblRate struct {
	Base      decimal `json:"base"`
	Percent   decimal `json:"percent"`
	Amount    decimal `json:"amount"`
	Surcharge *struct {
		Percent decimal `json:"percent"`
		Amount  decimal `json:"amount"`
	} `json:"surcharge"`
}

package answers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Period is a span of posting dates.
type Period struct {
	StartsOn string     `json:"startsOn" format:"date"`
	EndsOn   string     `json:"endsOn" format:"date"`
	State    string     `json:"state" enum:"open,closed"`
	ClosedAt *time.Time `json:"closedAt,omitempty" doc:"Absent: it is open"`
}

// PeriodOf makes the answer of a period.
func PeriodOf(p models.Period) Period {
	return Period{StartsOn: p.StartsOn.String(), EndsOn: p.EndsOn.String(), State: string(p.State), ClosedAt: p.ClosedAt}
}

// ClosingItem is one row of the list that is worked off before a period is closed.
type ClosingItem struct {
	Code        string   `json:"code" doc:"What is open, such as UNPOSTED_FAILED"`
	Required    bool     `json:"required" doc:"Whether it has to be done before the period is closed"`
	Count       int64    `json:"count" doc:"How many there are: documents, periods, accounts"`
	Account     string   `json:"account,omitempty"`
	Currency    string   `json:"currency,omitempty"`
	AmountMinor Minor    `json:"amountMinor,omitempty" doc:"In minor units: debits less credits; of TAX what is owed by the documents and not posted, of EXCHANGE what is won"`
	Amount      Decimal  `json:"amount,omitempty" doc:"The same as a decimal number"`
	Examples    []string `json:"examples,omitempty" doc:"Ids of documents, or first days of periods, at most 20"`
	WhatToDo    string   `json:"whatToDo"`
}

// ClosingItemOf makes the answer of a row of a closing list.
func ClosingItemOf(i *models.ClosingItem) ClosingItem {
	out := ClosingItem{
		Code: string(i.Code), Required: i.Required, Count: i.Count, Account: i.Account, Currency: i.Currency, Examples: i.Examples,
		WhatToDo: i.WhatToDo,
	}
	out.AmountMinor, out.Amount = Amount(i.Amount, i.Currency)
	return out
}

// ClosingList is what is to be done before a period is closed.
type ClosingList struct {
	Period Period        `json:"period"`
	Ready  bool          `json:"ready" doc:"Whether nothing is left that has to be done; true of a closed period"`
	List   []ClosingItem `json:"list"`
}

// ClosingListOf makes the answer of a closing list.
func ClosingListOf(p models.Period, list []models.ClosingItem) ClosingList {
	out := ClosingList{Period: PeriodOf(p), Ready: true, List: List(list, ClosingItemOf)}
	for i := range list {
		out.Ready = out.Ready && (!list[i].Required || p.State == models.PeriodClosed)
	}
	return out
}

// Adjustment is what was posted of a period after it was first closed, in one currency.
type Adjustment struct {
	ImpactID     int64     `json:"impactId"`
	DocumentID   string    `json:"documentId"`
	Kind         string    `json:"kind" enum:"post,reverse"`
	Reason       string    `json:"reason" enum:"opened_again,later_day" doc:"On the period's days, which were open again, or on the first open day after it"`
	DocumentDate string    `json:"documentDate" format:"date"`
	PostingDate  string    `json:"postingDate" format:"date"`
	CreatedAt    time.Time `json:"createdAt"`
	Currency     string    `json:"currency,omitempty" doc:"Absent: the impact has no entry"`
	DebitsMinor  Minor     `json:"debitsMinor,omitempty" doc:"The sum of its debits, which equals that of its credits, in minor units"`
	Debits       Decimal   `json:"debits,omitempty" doc:"The same as a decimal number"`
}

// AdjustmentOf makes the answer of an adjustment.
func AdjustmentOf(a *models.Adjustment) Adjustment {
	out := Adjustment{
		ImpactID: a.ImpactID, DocumentID: a.DocumentID, Kind: string(a.Kind), Reason: string(a.Reason),
		DocumentDate: a.DocumentDate.String(), PostingDate: a.PostingDate.String(), CreatedAt: a.CreatedAt, Currency: a.Currency,
	}
	out.DebitsMinor, out.Debits = Amount(a.Debits, a.Currency)
	return out
}

// AdjustmentList is a page of adjustments.
type AdjustmentList struct {
	Adjustments []Adjustment `json:"adjustments"`
	NextCursor  string       `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// Closing is the closing of a period, or its opening.
type Closing struct {
	Number       int           `json:"number" doc:"Counts an organization's closings and openings from 1"`
	Action       string        `json:"action" enum:"closed,opened"`
	StartsOn     string        `json:"startsOn" format:"date"`
	EndsOn       string        `json:"endsOn" format:"date"`
	Days         string        `json:"days" doc:"The days that it closed or opened, as PostgreSQL writes them" example:"{[2025-03-01,2025-04-01)}"`
	ClosedDays   string        `json:"closedDays" doc:"All days that are closed after it"`
	ClosedBy     string        `json:"closedBy"`
	DBRole       string        `json:"dbRole"`
	CreatedAt    time.Time     `json:"createdAt"`
	Impacts      int64         `json:"impacts" doc:"How many impacts the days had"`
	Entries      int64         `json:"entries"`
	LastImpactID int64         `json:"lastImpactId"`
	ImpactsHash  string        `json:"impactsHash" doc:"SHA-256 of the impacts and their entries, in hexadecimal"`
	PreviousHash string        `json:"previousHash,omitempty" doc:"The hash of the one before it"`
	Hash         string        `json:"hash"`
	List         []ClosingItem `json:"list,omitzero" doc:"What was open when it was closed; absent: it was opened"`
	Signature    []byte        `json:"signature,omitempty" doc:"Ed25519, of the text \"daybook closing \" and the hash"`
	KeyID        string        `json:"keyId,omitempty" doc:"The first 16 bytes of the SHA-256 of the public key (DER), in hexadecimal"`
}

// ClosingOf makes the answer of a closing.
func ClosingOf(c *models.Closing) (Closing, error) {
	out := Closing{
		Number: c.Number, Action: string(c.Action), StartsOn: c.StartsOn.String(), EndsOn: c.EndsOn.String(), Days: c.Days,
		ClosedDays: c.ClosedDays, ClosedBy: c.ClosedBy, DBRole: c.DBRole, CreatedAt: c.CreatedAt, Impacts: c.Impacts,
		Entries: c.Entries, LastImpactID: c.LastImpactID, ImpactsHash: c.ImpactsHash, PreviousHash: c.PreviousHash, Hash: c.Hash,
		Signature: c.Signature, KeyID: c.KeyID,
	}
	if c.List == nil {
		return out, nil
	}
	var list []models.ClosingItem
	if err := json.Unmarshal(c.List, &list); err != nil {
		return out, fmt.Errorf("what was open at closing %d: %w", c.Number, err)
	}
	out.List = List(list, ClosingItemOf)
	return out, nil
}

// ClosingsOf makes the answers of closings.
func ClosingsOf(list []models.Closing) ([]Closing, error) {
	out := make([]Closing, len(list))
	for i := range list {
		var err error
		if out[i], err = ClosingOf(&list[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

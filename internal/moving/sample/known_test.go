package sample_test

// knownDocuments holds the change of each account in minor units, debit positive, as worked out by
// hand.
var knownDocuments = map[string]map[string]int64{
	// 1620.00 + 21 % VAT 340.20 - 15 % withheld 243.00 = 1717.20
	"es/out/invoice-es-es-freelance.json": {"1200": 171720, "1450": 24300, "4400": -162000, "3800": -34020},
	// 1600.00 + contribution 64.00 + 22 % VAT 366.08 - 20 % withheld 332.80 = 1697.28
	"it/out/b2b-fund-contribution.json": {"1200": 169728, "1450": 33280, "4400": -160000, "4920": -6400, "3800": -36608},
	// Prices with VAT, surcharge 4.30 on top, 25.00 paid in advance; the rates' taxes are a cent more
	// than their total.
	"es/out/invoice-es-es-vateqs-provider.json": {"1200": 8930, "3250": 2500, "4400": -9091, "3800": -2340, "6969": 1},
	// A credit note of 1000.00 + 23 % VAT.
	"pl/out/credit-note-settlement.json": {"1200": -123000, "4400": 100000, "3800": 23000},
	"in/out/invoice-in-in-stdr.json":     {"1200": 201780, "4400": -171000, "3800": -30780},
	"es/out/payment-partial.json":        {"1360": 101500, "1200": -101500},
}

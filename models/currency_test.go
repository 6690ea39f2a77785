package models_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

func TestMinorDigits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{"EUR": 2, "GBP": 2, "JPY": 0, "KWD": 3, "CLF": 4} {
		got, ok := models.MinorDigits(code)
		assert.True(t, ok, code)
		assert.Equal(t, want, got, code)
	}
	for _, code := range []string{"", "eur", "XAU", "XXX", "EURO"} {
		_, ok := models.MinorDigits(code)
		assert.False(t, ok, code)
	}
}

// A withdrawn currency keeps its digits, whatever replaced it: both sides of a redenomination are
// right.
func TestWithdrawnCurrenciesKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"HRK": "12.34 HRK", "SLL": "12.34 SLL", "SLE": "12.34 SLE", "LTL": "12.34 LTL", "ZWL": "12.34 ZWL",
		"ZWG": "12.34 ZWG",
		"BYR": "1234 BYR", "BYN": "12.34 BYN", "TRL": "1234 TRL", "TRY": "12.34 TRY", "MGF": "1234 MGF", "MGA": "12.34 MGA",
		"BGN": "12.34 BGN", "ANG": "12.34 ANG", "XCG": "12.34 XCG", "DEM": "12.34 DEM", "ITL": "1234 ITL",
		"VEF": "12.34 VEF",
	} {
		assert.Equal(t, want, models.FormatMinor(1234, code))
	}
}

func TestCheckCurrency(t *testing.T) {
	t.Parallel()
	day := func(text string) models.Date {
		d, err := models.ParseDate(text)
		require.NoError(t, err)
		return d
	}
	for code, issued := range map[string]string{
		"EUR": "2026-01-01", "HRK": "2023-12-31", "SLL": "2024-11-30", "SLE": "2026-01-01", "LTL": "2014-06-01",
		"ZWL": "2025-08-31",
		"DEM": "1999-03-01", "BGN": "2026-12-31", "CUC": "1995-01-01",
	} {
		require.NoError(t, models.CheckCurrency(code, day(issued)), code)
		require.NoError(t, models.CheckCurrency(code, models.Date{}), code)
	}
	for code, want := range map[string]string{
		"HRK": "HRK was withdrawn from ISO 4217 in 2023-01: it takes documents that are issued before 2024-01-01, and " +
			"this one is of 2026-11-28; " +
			"correct the currency or the date",
		"SLL": "SLL was withdrawn from ISO 4217 in 2023-12",
		"LTL": "LTL was withdrawn from ISO 4217 in 2014-12",
		"XEU": "XEU was withdrawn from ISO 4217 in 1999-01, and no minor unit of it is on record",
		"XAU": "XAU stands for gold and has no minor unit in ISO 4217",
		"XXX": "XXX stands for no currency at all and has no minor unit",
		"XTS": "XTS stands for tests only and has no minor unit",
		"XDR": "XDR stands for the special drawing right",
		"eur": `"eur" is no ISO 4217 code: write EUR`,
		"EUX": `"EUX" is no ISO 4217 code`,
		"":    "there is none; want a code of ISO 4217, such as EUR",
	} {
		require.ErrorContains(t, models.CheckCurrency(code, day("2026-11-28")), want, code)
	}
}

func TestFormatMinor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		amount   int64
		currency string
		want     string
	}{
		{10, "EUR", "0.10 EUR"},
		{-10, "EUR", "-0.10 EUR"},
		{0, "EUR", "0.00 EUR"},
		{123456, "USD", "1234.56 USD"},
		{28305, "JPY", "28305 JPY"},
		{-5, "KWD", "-0.005 KWD"},
		{7, "???", "7 ???"},
		{math.MinInt64, "EUR", "-92233720368547758.08 EUR"},
		{math.MaxInt64, "CLF", "922337203685477.5807 CLF"},
	} {
		assert.Equal(t, test.want, models.FormatMinor(test.amount, test.currency))
	}
}

package models_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

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

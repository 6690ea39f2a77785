package minor_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/text/minor"
)

func TestDecimal(t *testing.T) {
	t.Parallel()
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	for _, test := range []struct {
		amount   *big.Int
		currency string
		want     string
	}{
		{big.NewInt(0), "EUR", "0.00"},
		{big.NewInt(5), "EUR", "0.05"},
		{big.NewInt(-5), "EUR", "-0.05"},
		{big.NewInt(-123456), "EUR", "-1234.56"},
		{big.NewInt(123456), "JPY", "123456"},
		{big.NewInt(123456), "KWD", "123.456"},
		{big.NewInt(7), "CLF", "0.0007"},
		{big.NewInt(123), "???", "123"},
		{huge, "EUR", "1234567890123456789012345678.90"},
	} {
		assert.Equal(t, test.want, minor.Decimal(test.amount, test.currency))
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 100, "1.5": 150, "1,5": 150, "1.50": 150, "-1,50": -150, "−1.50": -150, "1234.5": 123450, " 1,234.50 ": 123450,
		"1.234,50": 123450, "1 234,50": 123450, "1'234.50": 123450, "1,234,567": 123456700, "1.234.567": 123456700, "0": 0,
	} {
		got, err := minor.Parse(text, "EUR")
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "-", "x", "1,234", "1.234", "1.230", "1,23,456", "12,34.50", "1.2.3", "1e3", "99999999999999999999", ".5", "1..5", "--1",
	} {
		_, err := minor.Parse(text, "EUR")
		assert.Error(t, err, text)
	}
	got, err := minor.Parse("1234", "JPY")
	assert.NoError(t, err)
	assert.EqualValues(t, 1234, got)
	got, err = minor.Parse("1.234", "KWD")
	assert.NoError(t, err)
	assert.EqualValues(t, 1234, got)
	_, err = minor.Parse("1", "XXX")
	assert.Error(t, err)
}

func TestIsCurrency(t *testing.T) {
	t.Parallel()
	assert.True(t, minor.IsCurrency("EUR"))
	for _, code := range []string{"", "eur", "EURO", "EU", "E R", "EUR\n"} {
		assert.False(t, minor.IsCurrency(code), "%q", code)
	}
}

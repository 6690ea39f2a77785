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

func TestIsCurrency(t *testing.T) {
	t.Parallel()
	assert.True(t, minor.IsCurrency("EUR"))
	for _, code := range []string{"", "eur", "EURO", "EU", "E R", "EUR\n"} {
		assert.False(t, minor.IsCurrency(code), "%q", code)
	}
}

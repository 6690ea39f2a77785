package answers

import (
	"math/big"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/text/minor"
)

// Minor is an amount in minor units of its currency. An answer that has an amount has two members: x
// is a Decimal, and xMinor beside it a Minor. It is a string, for the numbers of JSON are exact up to
// 2^53 alone, and sums may be greater.
type Minor string

// Decimal is an amount as a decimal number, with the decimals of its currency.
type Decimal string

// Patterns of amounts.
const (
	MinorPattern   = `^-?\d+$`
	DecimalPattern = `^-?\d+(\.\d+)?$`
)

// Schema implements huma.SchemaProvider.
func (Minor) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: MinorPattern, Examples: []any{"1234"}}
}

// Schema implements huma.SchemaProvider.
func (Decimal) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: DecimalPattern, Examples: []any{"12.34"}}
}

// Amount is an amount as every answer has it; nil: there is none, and both are empty.
func Amount(n *big.Int, currency string) (Minor, Decimal) {
	if n == nil {
		return "", ""
	}
	return Minor(n.String()), Decimal(minor.Decimal(n, currency))
}

// Amount64 is Amount of an amount that 64 bits hold.
func Amount64(n int64, currency string) (Minor, Decimal) { return Amount(big.NewInt(n), currency) }

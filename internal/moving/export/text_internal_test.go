package export

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What was posted in a currency that is withdrawn since is exported with its decimals.
func TestWithdrawnCurrencyHasItsDecimals(t *testing.T) {
	t.Parallel()
	huge, _ := new(big.Int).SetString("100000000000000000000", 10)
	assert.Equal(t, "12.34 HRK", decimal(big.NewInt(1234), "HRK"))
	assert.Equal(t, "1000000000000000000.00 SLL", decimal(huge, "SLL"))
	assert.Equal(t, "1234", number(1234, "BYR"))
}

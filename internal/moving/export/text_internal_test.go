package export

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGuarded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", "＝1", "＋1", "－1", "＠A"} {
		assert.Equal(t, "'"+text, guarded(text))
	}
	for _, text := range []string{"", "a=1", " =1", "'=1", "1-2", "Müller", "\xff"} {
		assert.Equal(t, text, guarded(text))
	}
	for text, want := range map[string]string{
		"a;=1":         "a;'=1",
		"a\t=1":        "a\t'=1",
		"a;-1;+2;b":    "a;'-1;'+2;b",
		"a\n=1":        "a\n'=1",
		"a;\"=1\"":     "a;'\"=1\"",
		";@SUM(A1)":    ";'@SUM(A1)",
		"a\r\n＝1":      "a\r\n'＝1",
		"=1;=2":        "'=1;'=2",
		"\t=1":         "'\t'=1",
		"a; =1":        "a; =1",
		"a;b=1":        "a;b=1",
		"\xff;\xff;=1": "\xff;\xff;'=1",
		"a;":           "a;",
	} {
		assert.Equal(t, want, guarded(text))
	}
}

// What was posted in a currency that is withdrawn since is exported with its decimals.
func TestWithdrawnCurrencyHasItsDecimals(t *testing.T) {
	t.Parallel()
	huge, _ := new(big.Int).SetString("100000000000000000000", 10)
	assert.Equal(t, "12.34 HRK", decimal(big.NewInt(1234), "HRK"))
	assert.Equal(t, "1000000000000000000.00 SLL", decimal(huge, "SLL"))
	assert.Equal(t, "1234", number(1234, "BYR"))
}

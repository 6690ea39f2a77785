package formula_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/text/formula"
)

func TestGuarded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t1", "\r1", "\n1", "＝1", "＋1", "－1", "＠A"} {
		assert.Equal(t, "'"+text, formula.Guard(text))
	}
	for _, text := range []string{"", "a=1", " =1", "'=1", "1-2", "Müller", "\xff"} {
		assert.Equal(t, text, formula.Guard(text))
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
		assert.Equal(t, want, formula.Guard(text))
	}
}

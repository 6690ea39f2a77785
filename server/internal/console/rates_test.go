package console_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func TestRatesPage(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	assert.Contains(t, s.see("/console/rates?org=acme"), "no currency of its own")
	next := "/console/rates?org=acme"
	s.done("/console/rates/own", url.Values{"currency": {"EUR"}, "next": {next}})
	body := s.done("/console/rates/set", url.Values{
		"currency": {"USD"}, "valid_on": {"2026-03-31"}, "rate": {"0.9248"}, "source": {"ECB"}, "next": {next},
	})
	sees(t, body, "The rate is set.", "0.9248", "ECB", "Exchange differences")
}

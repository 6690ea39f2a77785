package handlers

import (
	"encoding/json"
	"strings"
)

// maskedNames are the members of Plaid's answers that a job's result shows masked: numbers of
// accounts and of identity papers, and credentials.
var maskedNames = map[string]bool{
	"account": true, "account_number": true, "routing": true, "wire_routing": true, "iban": true, "bic": true,
	"sort_code": true, "branch": true, "institution": true,
	"ssn": true, "tax_id": true, "id_number": true, "access_token": true, "public_token": true, "processor_token": true,
	"secret": true,
}

// masked is a value without what must not be stored; whole masks every text in it.
func masked(v any, whole bool) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = masked(member, whole || maskedNames[strings.ToLower(name)])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, member := range v {
			out[i] = masked(member, whole)
		}
		return out
	case string:
		if whole {
			return mask(v)
		}
	case json.Number:
		if whole {
			return mask(v.String())
		}
	}
	return v
}

// mask keeps the last four characters of a long text.
func mask(text string) string {
	if len(text) < 9 {
		return "***"
	}
	return "***" + text[len(text)-4:]
}

// bounded is the result of a job: the answers masked, or, when they are too long, how many entries
// each list has.
func (h *PlaidHandler) bounded(answers map[string]any) PlaidResult {
	result := PlaidResult{Products: map[string]any{}}
	for product, answer := range answers {
		result.Products[product] = masked(answer, false)
	}
	raw, err := json.Marshal(result)
	if err == nil && len(raw) <= h.config.MaxResult {
		return result
	}
	result.Shortened = true
	for product, answer := range answers {
		counts := map[string]int{}
		if members, ok := answer.(map[string]any); ok {
			for name, member := range members {
				if list, ok := member.([]any); ok {
					counts[name] = len(list)
				}
			}
		}
		result.Products[product] = counts
	}
	return result
}

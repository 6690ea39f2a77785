package minor

import "regexp"

// CurrencyPattern is what an ISO 4217 code looks like. No document and no entry has another one.
const CurrencyPattern = `^[A-Z]{3}$`

var currency = regexp.MustCompile(CurrencyPattern)

// IsCurrency reports whether a text looks like the code of a currency. "eur" does not: to ask for
// it would show nothing.
func IsCurrency(code string) bool { return currency.MatchString(code) }

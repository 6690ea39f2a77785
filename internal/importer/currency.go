package importer

import "github.com/daybook-dev/daybook/models"

// MinorDigits returns the number of decimal digits of a currency's minor unit; see models.MinorDigits.
func MinorDigits(currency string) (digits int, ok bool) { return models.MinorDigits(currency) }

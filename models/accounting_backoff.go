package models

import "time"

// MaxAttempts is after how many counted attempts an accounting job is failed.
const MaxAttempts = 6

// DefaultRetryBase is the delay after the first attempt that failed; each later one is three times
// as long.
const DefaultRetryBase = 5 * time.Minute

// MaxBackoff caps the delay between two attempts.
const MaxBackoff = 6 * time.Hour

// Backoff is the delay after the attempt-th attempt (from 1): base × 3^(attempt-1), at most
// MaxBackoff. A base of zero or less means DefaultRetryBase.
func Backoff(base time.Duration, attempt int) time.Duration {
	if base <= 0 {
		base = DefaultRetryBase
	}
	d := base
	for range attempt - 1 {
		if d > MaxBackoff/3 {
			return MaxBackoff
		}
		d *= 3
	}
	return min(d, MaxBackoff)
}

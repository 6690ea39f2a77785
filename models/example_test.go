package models_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Amounts are whole numbers of the currency's minor unit; FormatMinor writes them for people.
func ExampleFormatMinor() {
	fmt.Println(models.FormatMinor(123456, "EUR"))
	fmt.Println(models.FormatMinor(-5, "EUR"))
	fmt.Println(models.FormatMinor(123456, "JPY"))
	fmt.Println(models.FormatMinor(123456, "KWD"))
	// Output:
	// 1234.56 EUR
	// -0.05 EUR
	// 123456 JPY
	// 123.456 KWD
}

// MinorDigits says how many decimal places a currency has, and whether ISO 4217 lists it.
func ExampleMinorDigits() {
	for _, currency := range []string{"EUR", "JPY", "KWD", "XXQ"} {
		digits, ok := models.MinorDigits(currency)
		fmt.Println(currency, digits, ok)
	}
	// Output:
	// EUR 2 true
	// JPY 0 true
	// KWD 3 true
	// XXQ 0 false
}

// A Date has no time and no zone: it is the same day everywhere.
func ExampleParseDate() {
	due, err := models.ParseDate("2026-02-28")
	fmt.Println(due, err)
	_, err = models.ParseDate("2026-02-29")
	fmt.Println(err != nil)
	// Output:
	// 2026-02-28 <nil>
	// true
}

// A Date is a JSON string; its zero value is null.
func ExampleNewDate() {
	type invoice struct {
		Issued models.Date `json:"issued"`
	}
	text, err := json.Marshal(invoice{models.NewDate(2026, time.March, 14)})
	fmt.Println(string(text), err)
	// Output: {"issued":"2026-03-14"} <nil>
}

// Each delay is three times the one before it, up to six hours.
func ExampleBackoff() {
	for attempt := 1; attempt <= 6; attempt++ {
		fmt.Print(models.Backoff(models.DefaultRetryBase, attempt), " ")
	}
	// Output: 5m0s 15m0s 45m0s 2h15m0s 6h0m0s 6h0m0s
}

// A processor or a hook says by the code of a JobError what becomes of the job.
func ExampleErrorf() {
	err := models.Errorf(models.CodeDocumentInvalid, "line %d has no amount", 3)
	fmt.Println(err)
	// Output: DOCUMENT_INVALID: line 3 has no amount
}

func ExampleSide_Opposite() {
	fmt.Println(models.Debit.Opposite(), models.Credit.Opposite())
	// Output: credit debit
}

// A job is in one of five states.
func ExampleParseJobState() {
	state, err := models.ParseJobState("failed")
	fmt.Println(state == models.JobFailed, err)
	_, err = models.ParseJobState("done")
	fmt.Println(err != nil)
	// Output:
	// true <nil>
	// true
}

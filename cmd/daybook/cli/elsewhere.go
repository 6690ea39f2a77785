package cli

import (
	"encoding/json"
	"fmt"

	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

// ElsewhereFields say what another system has posted of a document.
func ElsewhereFields(e *models.PostedElsewhere) Fields {
	next := map[models.NextPosting]string{
		models.NextDifference: "a newer version posts the difference",
		models.NextWait:       "a newer version waits for a person",
		models.NextFull:       "it was taken back there: Daybook posts the document in full",
	}[e.Next]
	lines := Fields{
		{"elsewhere", fmt.Sprintf("version %d is posted by %s, on %s", e.DocumentVersion, e.System, e.PostedOn)},
		{"", next},
	}
	if e.LeftVersion != nil {
		lines = append(lines, [2]string{
			"",
			fmt.Sprintf("up to version %d a person decided that Daybook posts nothing", *e.LeftVersion),
		})
	}
	if e.OpenItem != nil {
		lines = append(lines, [2]string{"", "what was open of it there is open here as " + *e.OpenItem})
	}
	var entries []models.EntryElsewhere
	if e.Entries == nil || json.Unmarshal(e.Entries, &entries) != nil {
		return append(lines, [2]string{"", "its entries there are not known"})
	}
	for _, one := range entries {
		lines = append(lines, [2]string{
			"",
			fmt.Sprintf("%s %s %s %s", one.Side, one.Account, minor.Decimal64(one.Amount, one.Currency), one.Currency),
		})
	}
	return lines
}

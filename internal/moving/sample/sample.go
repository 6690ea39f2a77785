// Package sample holds a chart of accounts and a rule set to start from. They post invoices, credit
// notes, bills, payments, refunds, payouts and deliveries of any country. A second chart and rule
// set, with a mapping for import, post the public data set "Online Retail".
package sample

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"os"
	"path/filepath"

	"github.com/daybook-dev/daybook/models"
)

//go:embed chart.csv
var chart []byte

//go:embed rules.yaml
var rules []byte

// documents are an invoice and its payment, of Organization.
//
//go:embed documents.ndjson
var documents []byte

// Organization is whose documents the sample's are.
const Organization = "org_123"

// Chart returns the accounts of the sample chart in order of their codes, without an organization.
func Chart() []models.Account { return parseChart(chart) }

func parseChart(source []byte) []models.Account {
	rows, err := csv.NewReader(bytes.NewReader(source)).ReadAll()
	if err != nil {
		panic("sample: chart.csv: " + err.Error()) // it is compiled in and tested
	}
	accounts := make([]models.Account, 0, len(rows))
	for _, row := range rows[1:] { // the first names the columns
		accounts = append(accounts, models.Account{
			Code: row[0], Name: row[1], Type: models.AccountType(row[2]), Role: models.AccountRole(row[3]), Section: row[4],
		})
	}
	return accounts
}

// Rules returns the source of the sample rule set.
func Rules() []byte { return bytes.Clone(rules) }

// Files are the paths of the sample's files.
type Files struct{ Chart, Rules, Documents string }

// Write writes the sample's files into a folder, which it makes.
func Write(dir string) (Files, error) {
	f := Files{filepath.Join(dir, "chart.csv"), filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "documents.ndjson")}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return f, err
	}
	for path, content := range map[string][]byte{f.Chart: chart, f.Rules: rules, f.Documents: documents} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return f, err
		}
	}
	return f, nil
}

package sample

import (
	"bytes"
	_ "embed"

	"github.com/daybook-dev/daybook/models"
)

//go:embed online-retail/mapping.yaml
var onlineRetailMapping []byte

//go:embed online-retail/chart.csv
var onlineRetailChart []byte

//go:embed online-retail/rules.yaml
var onlineRetailRules []byte

// OnlineRetailMapping returns the mapping that imports the data set "Online Retail"
// (docs/import.md).
func OnlineRetailMapping() []byte { return bytes.Clone(onlineRetailMapping) }

// OnlineRetailChart returns the accounts that OnlineRetailRules post to in order of their codes,
// without an organization.
func OnlineRetailChart() []models.Account { return parseChart(onlineRetailChart) }

// OnlineRetailChartCSV returns the chart as a CSV file with the columns code, name and type.
func OnlineRetailChartCSV() []byte { return bytes.Clone(onlineRetailChart) }

// OnlineRetailRules returns the source of the rule set that posts every document of the data set.
func OnlineRetailRules() []byte { return bytes.Clone(onlineRetailRules) }

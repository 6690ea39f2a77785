package importer_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
)

// TestCSVOfDimensions: a document's must be the same in all its rows, a line's are of its row.
func TestCSVOfDimensions(t *testing.T) {
	t.Parallel()
	const mapping = `group: {key: Id}
document:
  date: Date
  currency: {value: EUR}
  types: [{type: invoice}]
  dimensions: {channel: {value: shop}, region: Region}
lines:
  net: Net
  dimensions: {cost_centre: {column: Team, values: {E: east, "": ""}, otherwise: other}}
`
	documents := imported(t, mapping, "Id,Date,Region,Team,Net\n1,2026-01-05,north,E,1.00\n1,2026-01-05,,,2.00\n2,2026-01-05,,X,3.00\n")
	require.Len(t, documents, 2)
	c := documents[0].Content
	assert.Equal(t, models.Dimensions{"channel": "shop", "region": "north"}, c.Dimensions)
	assert.Equal(t, models.Dimensions{"cost_centre": "east"}, c.Lines[0].Dimensions)
	assert.Nil(t, c.Lines[1].Dimensions)
	assert.Equal(t, models.Dimensions{"channel": "shop"}, documents[1].Content.Dimensions)
	assert.Equal(t, models.Dimensions{"cost_centre": "other"}, documents[1].Content.Lines[0].Dimensions)

	assert.Contains(t, refused(t, mapping, "Id,Date,Region,Team,Net\n1,2026-01-05,north,E,1.00\n1,2026-01-05,south,E,2.00\n"),
		"the text of dimensions is")
	_, err := importer.ParseMapping([]byte("group: {key: Id}\ndocument:\n  date: Date\n  currency: {value: EUR}\n" +
		"  amount: A\n  types: [{type: payment}]\n  dimensions: {Region: R}\n"))
	assert.ErrorContains(t, err, "Region")
}

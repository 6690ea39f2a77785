package importer

import (
	"math/big"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// lineBytes is about what a line needs in memory without its texts.
const lineBytes = 150

// line takes a line that a row becomes, and its tax.
func (d *draft) line(m *lineMapping, cells []string) error {
	line := models.Line{Kind: defaultKind}
	if chosen, ok := matching(m.kinds, cells); ok {
		line.Kind = chosen.result
	}
	var err error
	if line.Code, err = d.text(m.code, cells); err != nil {
		return err
	}
	if line.Description, err = d.text(m.description, cells); err != nil {
		return err
	}
	// A cell is a part of its row, all of which would be kept with it.
	line.Code, line.Description = strings.Clone(line.Code), strings.Clone(line.Description)
	d.bytes += lineBytes + len(line.Code) + len(line.Description)
	if line.Net, err = d.net(m, cells); err != nil {
		return err
	}
	if line.Dimensions, err = d.dimensions(m.dimensions, cells); err != nil {
		return err
	}
	if err := d.tax(m, cells, &line); err != nil {
		return err
	}
	d.sum.Add(d.sum, big.NewInt(line.Net))
	if d.refused == 0 {
		d.doc.Content.Lines = append(d.doc.Content.Lines, line)
	}
	return nil
}

// net is the amount that the row states, or else quantity times price. Either is rounded half to
// even to the minor unit.
func (d *draft) net(m *lineMapping, cells []string) (int64, error) {
	if n := m.net.column; n != noColumn && (cells[n] != "" || m.quantity == noColumn || m.price == noColumn) {
		return d.signed(cells, m.net)
	}
	quantity, err := d.number(cells, m.quantity, "")
	if err != nil {
		return 0, err
	}
	price, err := d.number(cells, m.price, d.doc.Currency)
	if err != nil {
		return 0, err
	}
	return d.minor(quantity.times(price), cells[m.quantity], cells[m.price])
}

// dimensions are the dimensions that a row states; an empty cell states none.
func (d *draft) dimensions(fields []attribute, cells []string) (models.Dimensions, error) {
	var all models.Dimensions
	for _, x := range fields {
		text, err := d.text(x.field, cells)
		if err != nil {
			return nil, err
		}
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		if err := models.CheckDimension(x.name, text); err != nil {
			return nil, invalid("%w", err)
		}
		if all == nil {
			all = models.Dimensions{}
		}
		all[x.name] = strings.Clone(text)
		d.bytes += len(x.name) + len(text)
	}
	return all, nil
}

package importer

import (
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/models"
)

// mappingFile is a mapping as it is written, after it was compared with the schema.
type mappingFile struct {
	CSV struct {
		Separator string
		Encoding  encoding
		Header    *bool
		Columns   []placedText
		Preamble  int
		Skip      []choiceText
	} `yaml:"csv"`
	Numbers struct {
		Decimal   string
		Thousands placedText
	}
	Group struct {
		Key   textList
		Files grouping
	}
	Document struct {
		Organization, Number, Currency, Direction, Counterparty, Country fieldText
		Date                                                             dateText
		ValueDate                                                        dateText `yaml:"value_date"`
		Total                                                            placedText
		Amount, Fee                                                      signedText
		Settled                                                          *struct {
			Amount   signedText
			Currency fieldText
		}
		Attributes map[string]fieldText
		Types      []choiceText
	}
	Lines *linesText
}

// linesText says how a row becomes a line.
type linesText struct {
	Code, Description    fieldText
	Quantity, Price, Net placedText
	Tax                  struct {
		Amount, Rate placedText
		Category     fieldText
		Included     bool
		Rates        rateUnit
	}
	Kinds []choiceText
}

// placedText is a text with its place in the file.
type placedText struct {
	text string
	at   *yaml.Node
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *placedText) UnmarshalYAML(n *yaml.Node) error {
	t.text, t.at = n.Value, n
	return nil
}

// textList is one text or several.
type textList []placedText

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *textList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]placedText)(l))
	}
	*l = textList{{n.Value, n}}
	return nil
}

// fieldText is a field as it is written; a plain text is the name of a column.
type fieldText struct {
	at        *yaml.Node
	Column    placedText
	Value     *string
	Values    map[string]string
	Otherwise *string
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (f *fieldText) UnmarshalYAML(n *yaml.Node) error {
	type object fieldText
	if n.Kind == yaml.MappingNode {
		if err := n.Decode((*object)(f)); err != nil {
			return err
		}
	} else {
		f.Column = placedText{n.Value, n}
	}
	f.at = n
	return nil
}

// signedText is a column with amounts as it is written.
type signedText struct {
	Column placedText
	Negate bool
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *signedText) UnmarshalYAML(n *yaml.Node) error {
	type object signedText
	if n.Kind == yaml.MappingNode {
		return n.Decode((*object)(s))
	}
	s.Column = placedText{n.Value, n}
	return nil
}

// dateText is a date field as it is written.
type dateText struct{ Column, Layout placedText }

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *dateText) UnmarshalYAML(n *yaml.Node) error {
	type object dateText
	if n.Kind == yaml.MappingNode {
		return n.Decode((*object)(d))
	}
	d.Column = placedText{n.Value, n}
	return nil
}

// choiceText is a row of the tables of types and kinds.
type choiceText struct {
	at              *yaml.Node
	Column          placedText
	Is              textList
	Prefix, Matches placedText
	Type, Kind      string
	Negate          bool
	Direction       models.Direction
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *choiceText) UnmarshalYAML(n *yaml.Node) error {
	type object choiceText
	err := n.Decode((*object)(c))
	c.at = n
	return err
}

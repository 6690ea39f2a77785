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
	Document  documentText
	Documents []yaml.Node
	Lines     lineList
}

// documentText says how rows become a document.
type documentText struct {
	at                                                               *yaml.Node
	Name                                                             placedText
	Rows                                                             []choiceText
	Organization, Number, Currency, Direction, Counterparty, Country fieldText
	Date                                                             dateText
	ValueDate                                                        dateText  `yaml:"value_date"`
	DueDate                                                          dateText  `yaml:"due_date"`
	RefersTo                                                         fieldText `yaml:"refers_to"`
	Total                                                            placedText
	Amount, Fee                                                      signedText
	Settled                                                          *settledAmount
	Taxes                                                            []taxText
	Attributes, Dimensions                                           map[string]fieldText
	Types                                                            []choiceText
	Lines                                                            lineList
}

// UnmarshalYAML implements yaml.Unmarshaler. It leaves what the node does not state as it is.
func (d *documentText) UnmarshalYAML(n *yaml.Node) error {
	type object documentText
	err := n.Decode((*object)(d))
	d.at = n
	return err
}

type settledAmount struct {
	Amount   signedText
	Currency fieldText
}

// taxText is a tax of a whole document as it is written.
type taxText struct {
	at                    *yaml.Node
	Amount, Rate, Percent placedText
	Category              fieldText
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *taxText) UnmarshalYAML(n *yaml.Node) error {
	type object taxText
	err := n.Decode((*object)(t))
	t.at = n
	return err
}

// lineText says how a row becomes a line.
type lineText struct {
	at                *yaml.Node
	Rows              []choiceText
	Code, Description fieldText
	Quantity, Price   placedText
	Net               signedText
	Tax               struct {
		at                    *yaml.Node
		Amount, Rate, Percent placedText
		Category              fieldText
		Included              bool
		Rates                 rateUnit
	}
	Kinds      []choiceText
	Dimensions map[string]fieldText
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *lineText) UnmarshalYAML(n *yaml.Node) error {
	type object lineText
	err := n.Decode((*object)(l))
	l.at = n
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "tax" {
			l.Tax.at = n.Content[i+1]
		}
	}
	return err
}

// lineList is one line or several.
type lineList []lineText

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *lineList) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]lineText)(l))
	}
	*l = make(lineList, 1)
	return n.Decode(&(*l)[0])
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
	*f = fieldText{} // it replaces what all documents of the rows have in common
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
	*s = signedText{}
	if n.Kind == yaml.MappingNode {
		return n.Decode((*object)(s))
	}
	s.Column = placedText{n.Value, n}
	return nil
}

// dateText is a date field as it is written.
type dateText struct{ Column, Layout, Zone placedText }

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *dateText) UnmarshalYAML(n *yaml.Node) error {
	type object dateText
	*d = dateText{}
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
	Negate, Skip    bool
	Direction       models.Direction
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *choiceText) UnmarshalYAML(n *yaml.Node) error {
	type object choiceText
	err := n.Decode((*object)(c))
	c.at = n
	return err
}

package importer

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"math/big"
	"strings"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
)

const (
	// maxXMLDepth bounds elements within each other; UBL and CII need some fifteen.
	maxXMLDepth = 100
	// maxXMLElements bounds the elements of a document that is held in memory: an empty one takes many
	// times its place in the file. A line of an invoice has some twenty-five.
	maxXMLElements = 200_000
)

// xmlDecoder reads tokens whose namespaces have the short names of spaces, which the file's own
// prefixes have nothing to do with. A name in spaces that ends in a point stands for all addresses
// that begin so.
//
// A document type is refused, and with it all entities but the five that XML has.
//
// It reads at most so many elements; 0: any number.
func xmlDecoder(r io.Reader, spaces map[string]string, elements int) (*xml.Decoder, error) {
	text, err := bom.Reader(r)
	if err != nil {
		return nil, invalid("%v", err)
	}
	source := xml.NewDecoder(text)
	source.CharsetReader = func(label string, input io.Reader) (io.Reader, error) {
		encoding, err := htmlindex.Get(label)
		if err != nil {
			return nil, invalid("the encoding %.40q is unknown; save the file as UTF-8", label)
		}
		return encoding.NewDecoder().Reader(input), nil
	}
	return xml.NewTokenDecoder(&shortNames{source: source, spaces: spaces, most: elements}), nil
}

// readXML reads a document into a struct whose tags name namespaces by the short names of spaces.
// into says by the root element which struct.
func readXML(r io.Reader, spaces map[string]string, into func(root xml.Name) (any, error)) error {
	decoder, err := xmlDecoder(r, spaces, maxXMLElements)
	if err != nil {
		return err
	}
	for {
		token, err := decoder.Token()
		if err != nil {
			return xmlError(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		target, err := into(start.Name)
		if err != nil {
			return err
		}
		if err := decoder.DecodeElement(target, &start); err != nil {
			return xmlError(err)
		}
		break
	}
	// What stands behind the root would be lost in silence.
	for {
		switch token, err := decoder.Token(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return xmlError(err)
		default:
			if _, ok := token.(xml.StartElement); ok {
				return invalid("it is not one XML document: a second one follows")
			}
		}
	}
}

func xmlError(err error) error {
	var syntax *xml.SyntaxError
	switch {
	case errors.Is(err, ErrInvalid):
		return err
	case errors.Is(err, io.EOF), errors.As(err, &syntax):
		return invalid("it is not XML: %v", err)
	}
	return err
}

// shortNames reads tokens, puts the short name of a namespace in place of its address, and refuses
// what can hide something.
type shortNames struct {
	source *xml.Decoder
	spaces map[string]string
	depth  int
	// elements were read, most may be; 0: any number.
	elements, most int
}

// Token implements xml.TokenReader.
func (s *shortNames) Token() (xml.Token, error) {
	token, err := s.source.Token()
	if err != nil {
		return token, err
	}
	switch t := token.(type) {
	case xml.Directive:
		return nil, invalid("it has a document type (<!%.20s…>), which documents of this kind do not have", string(t))
	case xml.StartElement:
		if s.depth++; s.depth > maxXMLDepth {
			return nil, invalid("its elements are nested more than %d deep", maxXMLDepth)
		}
		if s.elements++; s.most > 0 && s.elements > s.most {
			return nil, invalid("it is too large: it has more than %d elements", s.most)
		}
		t.Name = s.short(t.Name)
		attrs := t.Attr[:0]
		for _, a := range t.Attr {
			if a.Name.Space == "" && a.Name.Local != "xmlns" {
				attrs = append(attrs, a)
			}
		}
		t.Attr = attrs
		return t, nil
	case xml.EndElement:
		s.depth--
		t.Name = s.short(t.Name)
		return t, nil
	}
	return token, nil
}

func (s *shortNames) short(name xml.Name) xml.Name {
	if short, ok := s.spaces[name.Space]; ok {
		return xml.Name{Space: short, Local: name.Local}
	}
	for address, short := range s.spaces {
		if strings.HasSuffix(address, ".") && strings.HasPrefix(name.Space, address) {
			return xml.Name{Space: short, Local: name.Local}
		}
	}
	return xml.Name{Space: "other", Local: name.Local}
}

// xmlAmount is an amount; an absent one has no text.
type xmlAmount struct {
	Text     string `xml:",chardata"`
	Currency string `xml:"currencyID,attr"`
}

// xmlNumbers reads the amounts and rates of a document in a currency. It keeps the first error.
type xmlNumbers struct {
	currency string
	err      error
}

// amount returns an amount, nil for an absent one. term names it in errors.
func (n *xmlNumbers) amount(a xmlAmount, term string) *big.Rat {
	text := xmlDecimal(a.Text)
	if text == "" || n.err != nil {
		return nil
	}
	r, err := decimal(text).rat()
	switch {
	case err != nil:
		n.err = invalid("%s: %w", term, err)
	case a.Currency != "" && a.Currency != n.currency:
		n.err = invalid("%s is in %.10q, and the document in %s", term, a.Currency, n.currency)
	}
	return r
}

// required is amount for what must be there.
func (n *xmlNumbers) required(a xmlAmount, term string) *big.Rat {
	r := n.amount(a, term)
	if r == nil {
		if n.err == nil {
			n.err = invalid("%s is missing", term)
		}
		return new(big.Rat)
	}
	return r
}

// charge returns a charge, or, as the indicator says, an allowance.
func (n *xmlNumbers) charge(indicator string, amount xmlAmount) eCharge {
	c := eCharge{amount: n.required(amount, "the amount of an allowance or a charge")}
	switch strings.TrimSpace(indicator) {
	case "true", "1":
	case "false", "0":
		c.allowance = true
		c.amount.Neg(c.amount)
	default:
		n.err = cmp.Or(n.err, invalid("an allowance or a charge says neither that it is one (true) nor the other (false)"))
	}
	return c
}

// percent returns a rate; an absent one is zero.
func (n *xmlNumbers) percent(text, term string) models.Rate {
	if text = xmlDecimal(text); text == "" || n.err != nil {
		return models.Rate{}
	}
	rate, err := models.ParseRate(text)
	if err != nil {
		n.err = invalid("%s: %w", term, err)
	}
	return rate
}

// xmlDecimal writes a decimal of XML Schema, which may be "+5", "5." or ".5", as other readers have
// it.
func xmlDecimal(text string) string {
	text = strings.TrimSpace(text)
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	return sign + strings.TrimSuffix(text, ".")
}

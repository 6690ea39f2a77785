package posting

import (
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/daybook-dev/daybook/models"
)

// The objects that an expression sees are the Go structs themselves. Each field has a getter of its
// own, so that reading one costs neither reflection nor a map.

// object describes one struct type to the expression language.
type object struct {
	typ    *cel.Type
	fields []*field
}

// field is one field of an object. Exactly one of integer, text and date is set where the field is
// plain; they read it without the detour through CEL values.
type field struct {
	name    string
	typ     *cel.Type
	value   func(object any) (any, error)
	present func(object any) bool

	integer func(object any) int64
	text    func(object any) string
	date    func(object any) models.Date
}

// lookup returns the field of that name, or nil.
func (o *object) lookup(name string) *field {
	i := slices.IndexFunc(o.fields, func(f *field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return o.fields[i]
}

// names returns the names of all fields in order of declaration.
func (o *object) names() []string {
	names := make([]string, len(o.fields))
	for i, f := range o.fields {
		names[i] = f.name
	}
	return names
}

var errNoDate = errors.New("the document has no date: set its issue_date")

var moneyObject = &object{typ: cel.ObjectType("daybook.Money"), fields: []*field{
	integerField("amount", func(m *models.Money) int64 { return m.Amount }),
	textField("currency", func(m *models.Money) string { return m.Currency }),
}}

var lineObject = &object{typ: cel.ObjectType("daybook.Line"), fields: append([]*field{
	textField("kind", func(l *models.Line) string { return l.Kind }),
	textField("code", func(l *models.Line) string { return l.Code }),
	textField("description", func(l *models.Line) string { return l.Description }),
	integerField("net", func(l *models.Line) int64 { return l.Net }),
	integerField("cost", func(l *models.Line) int64 { return l.Cost }),
	textField("category", func(l *models.Line) string { return l.Category }),
	textField("tax_code", func(l *models.Line) string { return l.TaxCode }),
	anyField("dimensions", cel.MapType(cel.StringType, cel.StringType),
		func(l *models.Line) (any, error) { return map[string]string(l.Dimensions), nil },
		func(l *models.Line) bool { return len(l.Dimensions) > 0 }),
}, rateFields(func(l *models.Line) models.Rate { return l.Rate })...)}

var taxObject = &object{typ: cel.ObjectType("daybook.Tax"), fields: append([]*field{
	textField("category", func(t *models.Tax) string { return t.Category }),
	textField("code", func(t *models.Tax) string { return t.Code }),
	textField("exemption", func(t *models.Tax) string { return t.Exemption }),
	integerField("base", func(t *models.Tax) int64 { return t.Base }),
	integerField("amount", func(t *models.Tax) int64 { return t.Amount }),
	anyField("retained", cel.BoolType,
		func(t *models.Tax) (any, error) { return types.Bool(t.Retained), nil },
		func(t *models.Tax) bool { return t.Retained }),
}, rateFields(func(t *models.Tax) models.Rate { return t.Rate })...)}

var documentObject = &object{typ: cel.ObjectType("daybook.Document"), fields: []*field{
	textField("org_id", func(d *models.Document) string { return d.OrgID }),
	textField("id", func(d *models.Document) string { return d.ID }),
	textField("type", func(d *models.Document) string { return string(d.Type) }),
	textField("direction", func(d *models.Document) string { return string(d.Direction) }),
	textField("currency", func(d *models.Document) string { return d.Currency }),
	dateField("issue_date",
		func(d *models.Document) models.Date { return d.IssueDate },
		func(d *models.Document) bool { return !d.IssueDate.IsZero() }),
	dateField("value_date", valueDate,
		func(d *models.Document) bool { return d.ValueDate != nil && !d.ValueDate.IsZero() }),
	textField("number", func(d *models.Document) string { return d.Content.Number }),
	textField("country", func(d *models.Document) string { return d.Content.Country }),
	textField("counterparty", func(d *models.Document) string { return d.Content.Counterparty }),
	textField("source", func(d *models.Document) string { return d.Content.Source }),
	integerField("total", func(d *models.Document) int64 { return d.Content.Total }),
	integerField("prepaid", func(d *models.Document) int64 { return d.Content.Prepaid }),
	integerField("payable", func(d *models.Document) int64 { return d.Content.Payable }),
	integerField("rounding", func(d *models.Document) int64 { return d.Content.Rounding }),
	integerField("amount", func(d *models.Document) int64 { return d.Content.Amount }),
	integerField("fee", func(d *models.Document) int64 { return d.Content.Fee }),
	anyField("settled", moneyObject.typ,
		func(d *models.Document) (any, error) { return settled(d), nil },
		func(d *models.Document) bool { return d.Content.Settled != nil }),
	anyField("lines", cel.ListType(lineObject.typ),
		func(d *models.Document) (any, error) { return d.Content.Lines, nil },
		func(d *models.Document) bool { return len(d.Content.Lines) > 0 }),
	anyField("taxes", cel.ListType(taxObject.typ),
		func(d *models.Document) (any, error) { return d.Content.Taxes, nil },
		func(d *models.Document) bool { return len(d.Content.Taxes) > 0 }),
	anyField("attributes", cel.MapType(cel.StringType, cel.StringType),
		func(d *models.Document) (any, error) { return d.Content.Attributes, nil },
		func(d *models.Document) bool { return len(d.Content.Attributes) > 0 }),
	anyField("dimensions", cel.MapType(cel.StringType, cel.StringType),
		func(d *models.Document) (any, error) { return map[string]string(d.Content.Dimensions), nil },
		func(d *models.Document) bool { return len(d.Content.Dimensions) > 0 }),
}}

var objects = []*object{documentObject, lineObject, taxObject, moneyObject}

// valueDate falls back to the issue date, as the document's column says.
func valueDate(d *models.Document) models.Date {
	if d.ValueDate != nil && !d.ValueDate.IsZero() {
		return *d.ValueDate
	}
	return d.IssueDate
}

// settled falls back to the document's own amount: where nothing was converted, that is what
// arrived.
func settled(d *models.Document) *models.Money {
	if d.Content.Settled != nil {
		return d.Content.Settled
	}
	return &models.Money{Amount: d.Content.Amount, Currency: d.Currency}
}

func integerField[T any](name string, get func(*T) int64) *field {
	f := anyField(name, cel.IntType,
		func(o *T) (any, error) { return types.Int(get(o)), nil },
		func(o *T) bool { return get(o) != 0 })
	f.integer = func(o any) int64 { return get(o.(*T)) }
	return f
}

func textField[T any](name string, get func(*T) string) *field {
	f := anyField(name, cel.StringType,
		func(o *T) (any, error) { return types.String(get(o)), nil },
		func(o *T) bool { return get(o) != "" })
	f.text = func(o any) string { return get(o.(*T)) }
	return f
}

func dateField[T any](name string, get func(*T) models.Date, present func(*T) bool) *field {
	f := anyField(name, cel.TimestampType,
		func(o *T) (any, error) {
			d := get(o)
			if d.IsZero() {
				return nil, errNoDate
			}
			return types.Timestamp{Time: d.Time()}, nil
		}, present)
	f.date = func(o any) models.Date { return get(o.(*T)) }
	return f
}

func anyField[T any](name string, typ *cel.Type, get func(*T) (any, error), present func(*T) bool) *field {
	return &field{
		name: name, typ: typ,
		value: func(o any) (any, error) {
			t, ok := o.(*T)
			if !ok {
				return nil, fmt.Errorf("%T has no field %s", o, name)
			}
			return get(t)
		},
		present: func(o any) bool {
			t, ok := o.(*T)
			return ok && present(t)
		},
	}
}

package metrics

const (
	// maxValues is how many values of a label are told apart: types of a kind, error codes,
	// organizations.
	maxValues = 100
	// other is the value of all beyond.
	other = "other"
)

// bounded lets the first values of a label pass, and makes one of all others. The lock of its owner
// protects it.
type bounded map[string]struct{}

func (b bounded) value(v string) string {
	if _, known := b[v]; known || v == "" {
		return v
	}
	if len(b) >= maxValues {
		return other
	}
	b[v] = struct{}{}
	return v
}

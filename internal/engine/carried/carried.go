// Package carried lets a struct of a public package carry a value whose type is internal, for other
// packages of this module: the struct's public API does not name that type.
package carried

// Value is embedded, by an alias that is not exported, in the struct that carries it.
type Value[T any] struct{ value T }

func (v *Value[T]) carried() *T { return &v.value }

// By is a pointer to a Value, or to a struct that embeds one.
type By[T any] interface{ carried() *T }

// Set has a struct carry a value.
func Set[T any](by By[T], value T) { *by.carried() = value }

// Get returns what a struct carries.
func Get[T any](by By[T]) T { return *by.carried() }

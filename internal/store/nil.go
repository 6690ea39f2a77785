package store

import "reflect"

// IsNil reports whether a handle is nil, or an interface that holds a nil pointer.
func IsNil(handle any) bool {
	v := reflect.ValueOf(handle)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

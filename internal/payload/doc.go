// Package payload says what a background job's payload may be: the limits that the database checks
// too, and the JSON Schema that is derived from the payload's Go type. Its errors name the field
// and never show a value.
package payload

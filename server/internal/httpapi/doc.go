// Package httpapi is Daybook's HTTP API: JSON over net/http, described by the OpenAPI document that
// it serves at /openapi.json. docs/http-api.md is for people.
//
// Every operation is one call of operation in a file named after what it is about. The package
// holds no SQL: it makes requests by package queue, as domain code does, and reads by
// internal/store.
package httpapi

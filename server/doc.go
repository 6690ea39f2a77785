// Package server serves Daybook's web console and HTTP API from a program of one's own, as `daybook
// serve` does: on an address (Serve), or as a handler beside the program's other pages.
//
// The console is under ConsoleRoot, the API under /api/, its OpenAPI document at /openapi.json.
// Requests need a token, which package tokens and `daybook tokens create` make; the server speaks
// plain HTTP, so that a proxy that does TLS belongs in front of it.
package server

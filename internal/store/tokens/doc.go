// Package tokens keeps the tokens of the HTTP API, by their hashes.
package tokens

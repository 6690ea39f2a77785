// Package protocol checks the protocol of leases, wake-ups, turns and shared transactions: small
// models in Promela, one file a subject, which SPIN searches exhaustively. docs/reliability.md maps
// each step to its function. Development only.
package protocol

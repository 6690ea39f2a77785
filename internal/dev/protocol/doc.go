// Package protocol checks the protocol of leases, wake-ups, turns and shared transactions. Small
// models in Promela, one file a subject, are searched exhaustively by SPIN, and traces of the real
// engine are replayed against one of them. Random interleavings of requests and workers run on
// PostgreSQL beside a model in memory, and processes are crashed at each statement.
// docs/reliability.md says what that holds, and maps each step to its function. Development only.
package protocol

// Package top shows a terminal what the queues do, as it happens: whether work gets done, how deep
// and how old each queue is, what was completed and what failed lately, by kind, type, error code,
// organization and worker.
//
// Its figures are those of internal/store/figures and internal/watching/health, which cost the
// database the same whatever the queues' size. Only the list of organizations counts their open
// jobs one by one; it is read every five seconds at most. All that says how things stand is read in
// one snapshot.
package top

// Package diagnosis reads from the database what tells whether work gets done: what is due and what
// holds it back, what failed, what is leased for too long, old snapshots, dead rows. Each function
// is cheap whatever the tables' size: it reads along an index and at most Most rows of it. A figure
// that reaches Most is a lower bound. Package internal/watching/health says in words what the facts
// mean.
package diagnosis

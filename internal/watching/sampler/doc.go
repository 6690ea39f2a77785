// Package sampler looks every 15 seconds how the queues stand, and writes it to daybook.gauges. Of
// all processes that run it one samples: the one whose name the last sample has. Another one samples
// when it ends: a worker's sessions in PostgreSQL end with it. So does one when it falls silent for
// 40 seconds, or for longer where its samples took long.
package sampler

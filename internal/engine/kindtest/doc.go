// Package kindtest holds every kind of queue to the contract of the port, engine.Kind, against a
// real PostgreSQL. It consists of tests alone.
//
// A kind brings a queue: what the suite needs of it besides the port, such as a way to enqueue a
// job and to read how it stands. It stands in a file that is named after the kind, which calls run.
package kindtest

// Package scaffold writes the SQL of a process that is supervised in the database: a migration, and
// its tests (docs/tasks.md).
package scaffold

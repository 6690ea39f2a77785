// Package archive keeps what retention removes from the database: completed tasks with all their
// facts, as lines of JSON in blob storage.
//
// A file is complete, and flushed, before the transaction commits that removes what is in it. When
// the program or the database ends between the two, the tasks are still in the database and in the
// file: a later removal writes them again. So a task may be in the archive twice, and is never
// lost; the lines of a task that was written twice are equal. A batch that is written again as it
// was has the same name and replaces its file.
package archive

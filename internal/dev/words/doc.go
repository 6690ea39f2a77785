// Package words holds the repository to its vocabulary, docs/glossary.md: its tests fail where a
// document, a comment, a message or a name uses a word that was replaced by another one. They also
// fail where a document has a link that leads nowhere, or gives make or go what is not there.
package words

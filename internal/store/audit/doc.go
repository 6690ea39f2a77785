// Package audit checks what must hold for documents, ledger, queues and schema, independently of
// the programs that wrote them.
package audit

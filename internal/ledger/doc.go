// Package ledger is Daybook's own processor: it posts documents by their organization's rule set as
// balanced entries.
package ledger

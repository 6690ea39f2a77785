package books

import (
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Errors of this package; compare with errors.Is. Rules that do not compile are a
// *posting.CompileError.
var (
	// ErrInvalid: an account, a period or a policy is none, a text is not UTF-8 or has the character
	// NUL, or the transaction's isolation level is not READ COMMITTED.
	ErrInvalid = store.ErrInvalid
	// ErrOrganizationNotFound: Daybook has nothing of the organization, most often because its id is
	// misspelled; Create of the options makes it known.
	ErrOrganizationNotFound = store.ErrOrganizationNotFound
	// ErrNoRuleSet: the organization has no such version of its rules, or none is active.
	ErrNoRuleSet = ledgerdb.ErrNoRuleSet
	// ErrAccountInUse: the type of an account with entries would change.
	ErrAccountInUse = failure.New(failure.AccountInUse, "the account has entries")
	// ErrRulesChanged: another version than the expected one is active; look again.
	ErrRulesChanged = failure.New(failure.RulesChanged, "the organization posts by other rules now")
	// ErrPeriodNotFound: no period of the organization begins on that day.
	ErrPeriodNotFound = ledgerdb.ErrPeriodNotFound
	// ErrPeriodClosed: the day of a journal or of a year-end close is closed.
	ErrPeriodClosed = store.ErrPeriodClosed
	// ErrDimensionNotFound: no entry of the organization has the dimension of a statement.
	ErrDimensionNotFound = store.ErrDimensionNotFound
	// ErrImportNotFound: there is no such import, or it is another organization's.
	ErrImportNotFound = store.ErrImportNotFound
	// ErrGroupNotFound: the organization has no such group of documents that belong together.
	ErrGroupNotFound = failure.New(failure.GroupNotFound, "no such group of documents")
	// ErrJournal: a journal cannot be posted, or its id is another document's.
	ErrJournal = failure.New(failure.DocumentRefused, "the journal cannot be posted")
	// ErrJournalNotFound: the organization has no journal of that id.
	ErrJournalNotFound = failure.New(failure.DocumentNotFound, "no such journal")
	// ErrClosingKey: what is to sign closings is no Ed25519 key.
	ErrClosingKey = models.ErrClosingKey
	// ErrNoDB: a function was given nothing to work on.
	ErrNoDB = failure.New(failure.Misuse, "the DB is nil: pass a pool or a connection, or books.In of your transaction")
	// ErrNotMigrated: the database lacks Daybook's schema: run `daybook migrate up`.
	ErrNotMigrated = store.ErrNotMigrated
)

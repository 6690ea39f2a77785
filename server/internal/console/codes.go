package console

import "github.com/daybook-dev/daybook/models"

// reason says what an error code means and what a person does about it.
type reason struct {
	// Says is what went wrong, Todo what helps.
	Says, Todo string
	// Name and Path lead to the page of the console on which it is mended; empty: it is mended
	// elsewhere.
	Name, Path string
}

// reasons has every code of Daybook's own. An application's own codes have no row: their text is
// the application's.
var reasons = map[models.ErrorCode]reason{
	models.CodeRateLimited: {
		"The called server asked for fewer calls.",
		"Retry later. If it comes back, let fewer jobs of the type run at a time: Policy.ParallelEverywhere.", "", "",
	},
	models.CodeUpstream5xx: {
		"The called server answered that it cannot answer.",
		"Ask those who run that server. Retry when it answers again.", "", "",
	},
	models.CodeNetworkError: {
		"A server was not reached, or the connection broke.",
		"Check name, port, certificate and firewall of the server that the error names. Retry when it is reached.", "", "",
	},
	models.CodeHandlerError: {
		"The handler returned an error without a code, or panicked.",
		"Read the error. Mend the handler or what it is given, then retry.", "", "",
	},
	models.CodePayloadInvalid: {
		"The payload is not what the handler of the type asks for.",
		"Trying again cannot help. Mend what enqueues such jobs, enqueue a new one, and cancel this one.", "", "",
	},
	models.CodePayloadTooLarge: {
		"The payload has more than 128 KB.",
		"Keep what is large elsewhere, and its name in the payload.", "", "",
	},
	models.CodeAuthenticationFailed: {
		"A server refused the credentials, or a secret that the payload names is missing.",
		"Set the secret that the error names, and bind it to the organization. Then retry.", "", "",
	},
	models.CodeNotFound: {
		"What the job is about does not exist.",
		"Check the address or the id in the payload. Cancel the job if it is gone for good.", "", "",
	},
	models.CodeHandlerMissing: {
		"No worker that lives has a handler for the type.",
		"Start a worker that registers the type: its jobs come back by themselves.", "Workers", "workers",
	},
	models.CodeReclaimed: {
		"The worker ended during the attempt.",
		"Look into the worker's log and its memory at that time. Retry: another worker takes it.", "", "",
	},
	models.CodeResultNotStored: {
		"The job is done, and the database cannot hold its result.",
		"Nothing for this job. Have the handler leave a result that can be stored: the error says what is wrong.", "", "",
	},
	models.CodeKeyUnknown: {
		"The worker does not have the key under which the payload was encrypted.",
		"Give the worker's file of keys the key that the page names, and retry. A key that was erased is not to be had: cancel.",
		"", "",
	},
	models.CodeActivityNotStandalone: {
		"The Temporal server starts no activity without a workflow around it.",
		"Have it run Server 1.32 or newer with Standalone Activities on, or leave out standalone in the worker's file, then retry.",
		"", "",
	},
	models.CodeNotEncrypted: {
		"Members of the payload came in plain that the job's type encrypts.",
		"Cancel it, and enqueue it by a program that has the keys. The plain text is in the database until the job is removed.",
		"", "",
	},
	models.CodeSnoozed: {
		"The handler put the job off. No attempt was counted.",
		"Nothing: it is worked again at the time that it asked for.", "", "",
	},
	models.CodeAwaitingCallback: {
		"The handler asked for a callback. No attempt was counted.",
		"Nothing: it is worked again when the callback comes, or at its deadline.", "", "",
	},
	models.CodeAwaitedCancelled: {
		"A job that this one waited for was cancelled or removed.",
		"Retry to work this one without that. Or cancel it.", "", "",
	},
	models.CodeReplaced: {
		"A newer request with the same debounce key has made a job that takes this one's place.",
		"Nothing: the newer job has the payload that counts.", "", "",
	},
	models.CodeStepInvalid: {
		"The handler asked for a step that cannot be: its name is wrong or was used before, or there are too many.",
		"Mend the handler, then retry: the job goes on behind the steps that are kept.", "", "",
	},
	models.CodeStepNotStored: {
		"The database cannot hold the result of a step.",
		"Have the step return something smaller, such as the name of where the rest is, then retry.", "", "",
	},
	models.CodeStepChanged: {
		"What an earlier attempt has kept of a step does not fit the program any more.",
		"Give the step another name, or have the program read both forms, then retry; or retry as if never tried.", "", "",
	},
	models.CodeJobCancelled: {
		"The handler said that there is nothing left to do.",
		"Nothing, unless the text surprises you.", "", "",
	},

	models.CodeDocumentDeleted: {"The document was deleted. What was posted of it is reversed.", "Nothing.", "", ""},
	models.CodeDocumentUnknown: {
		"The organization's source does not know the document.",
		"Check that the organization's source is the right one: `daybook organizations source`. Then retry.", "", "",
	},
	models.CodeSourceInvalid: {
		"The worker's program cannot read the organization's source: the error names the " +
			"statement and the column.", "Mend the program and start its worker anew: the job comes back by itself.", "Workers",
		"workers",
	},
	models.CodeDocumentNotReady: {
		"The document is not marked ready.",
		"Nothing: it is read again, and at once when it is marked ready.", "", "",
	},
	models.CodeVersionMismatch: {
		"The job named another version than the document has.",
		"Nothing: it is tried again with the document's version.", "", "",
	},
	models.CodeNoMatchingRule: {
		"No rule, or no row of an account map, matches the document.",
		"Add the rule or the row and activate the rule set: the job comes back by itself.", "Mend the rules", "rules/edit",
	},
	models.CodeAmbiguousRule: {
		"Two rules match the document.",
		"Narrow one of them and activate the rule set: the job comes back by itself.", "Mend the rules", "rules/edit",
	},
	models.CodeUnknownAccount: {
		"A rule names an account that the organization's chart lacks.",
		"Import the account (`daybook accounts import`) or mend the rule: the job comes back by itself.",
		"Chart of accounts", "accounts",
	},
	models.CodeUnbalanced: {
		"Debits and credits differ by more than the rounding limit.",
		"Mend the document in the application that wrote it: its next version is posted. Or mend the rules, then retry.",
		"Mend the rules", "rules/edit",
	},
	models.CodeAmountNotRead: {"The document states an amount that its rule does not read, so that nothing would " +
		"be posted.", "Let the rule read the field that the document states: the job comes back by itself. Or mend the " +
		"document in the application that wrote it.", "Mend the rules", "rules/edit"},
	models.CodeAmountMissing: {
		"The document does not state the amount that it is about.",
		"Mend the document in the application that wrote it: its next version is posted.", "", "",
	},
	models.CodeAmountSign: {
		"An amount has a sign that the document's type does not allow.",
		"Mend the document in the application that wrote it: its next version is posted.", "", "",
	},
	models.CodeTotalsDiffer: {
		"The document's total is not what it says is payable and prepaid.",
		"Mend the document in the application that wrote it: its next version is posted.", "", "",
	},
	models.CodePeriodClosed: {
		"The posting date lies in a closed period, or in none and before a closed one.",
		"Open the period, add one for the date, or let the organization post on the first open day: the job comes back " +
			"by itself.", "Periods", "periods",
	},
	models.CodeDocumentInvalid: {
		"The document's content cannot be read, or lacks what a rule needs.",
		"Mend the document in the application that wrote it: its next version is posted.", "", "",
	},
	models.CodePostedElsewhere: {
		"Another system has posted an earlier version of the document.",
		"Decide what Daybook posts, on the document's page or by `daybook accounting elsewhere`. The job is tried again " +
			"by the decision.", "", "",
	},
	models.CodeFailedElsewhere: {
		"The job had failed in the queue that it was adopted from.",
		"Read the error, mend its cause, then retry.", "", "",
	},
	models.CodeProcessorError: {
		"The processor returned an error or panicked.",
		"Read the error, mend its cause, then retry.", "", "",
	},
	models.CodeWorkerLost: {
		"The worker ended, or lost its lease, while it worked on the job.",
		"Find out what in this job ends the process: the worker's own log, its memory. Then retry.", "Workers", "workers",
	},
	models.CodeDocumentLocked: {
		"Another transaction holds the document.", "Nothing: it is tried again in a second.",
		"", "",
	},
	models.CodeConfigurationLocked: {
		"Another transaction is changing the organization's rules, accounts or periods.",
		"Nothing: it is tried again shortly.", "", "",
	},

	models.CodeTimeout: {
		"The attempt, or what it called, took longer than it may: the error says which.",
		"Find out what it waited for. A longer time for an attempt is Policy.Timeout, for a call a setting of the type; " +
			"work that takes longer stores how far it has come and snoozes.", "", "",
	},
	models.CodeDatabaseError: {
		"The database refused a statement of this job.",
		"Read the error: it comes back until its cause is mended. Then retry.", "", "",
	},
	models.CodeRowUnreadable: {
		"The job's row cannot be leased or read.",
		"The error names the column. Look for a constraint of the table that was dropped (`daybook doctor`), or a " +
			"damaged disk. Then retry.", "", "",
	},
}

package health

import (
	"fmt"

	"github.com/daybook-dev/daybook/models"
)

// cause is what an error code means in words, and what mends it.
type cause struct {
	says string
	// mend is what to do before the jobs can succeed; back says that they are pending again by themselves then.
	mend string
	back bool
	// anew says that the jobs fail again as they are: others are enqueued in their place.
	anew bool
}

// steps are what to do about a finding of jobs that failed, with the command that has them worked again.
func (c cause) steps(f Finding) string {
	look := "Look at one: " + showCommand(f) + "."
	switch {
	case f.Kind == "tasks":
		return c.mend + " " + look + " A completed task stays as it is: the process that enqueued it enqueues another one."
	case c.back:
		return c.mend + " They are pending again by themselves then. " + look
	case f.Kind == "accounting":
		return fmt.Sprintf("%s %s Then: `daybook accounting retry --state failed --code %s --all`.", c.mend, look, f.ErrorCode)
	case c.anew:
		return fmt.Sprintf("%s %s Then: `daybook jobs cancel --all --type %s --code %s`.", c.mend, look, shell(f.Type), f.ErrorCode)
	default:
		return fmt.Sprintf("%s %s Then: `daybook jobs retry --all --type %s --code %s`.", c.mend, look, shell(f.Type), f.ErrorCode)
	}
}

// accountingCauses are those of documents that were not posted.
var accountingCauses = map[models.ErrorCode]cause{
	models.CodeNoMatchingRule: {
		says: "no posting rule of the organization matches the document.", back: true,
		mend: "Add a rule that matches: `daybook rules show --org ORG`, mend the file, then `daybook rules apply FILE --org ORG`.",
	},
	models.CodeAmbiguousRule: {
		says: "more than one posting rule matches the document.", back: true,
		mend: "Make the rules exclude each other, then `daybook rules apply FILE --org ORG`.",
	},
	models.CodeUnknownAccount: {
		says: "a rule names an account that the organization's chart lacks.", back: true,
		mend: "Add the account (`daybook accounts import FILE --org ORG`) or mend the rule (`daybook rules apply FILE --org ORG`).",
	},
	models.CodeUnbalanced: {
		says: "debits and credits of the document differ by more than the rounding limit.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	},
	models.CodeDocumentInvalid: {
		says: "the document cannot be read, or lacks what a rule needs.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	},
	models.CodePeriodClosed: {
		says: "the posting date lies in a closed period.", back: true,
		mend: "Open the period (`daybook periods open --org ORG --month MONTH`), or post on the first open day (`daybook periods policy first_open_day --org ORG`).",
	},
	models.CodeDocumentUnknown: {
		says: "the organization's source does not know the document.", back: true,
		mend: "Cancel what was asked for by mistake: `daybook accounting cancel ORG DOCUMENT`. Of others look which source is on record (`daybook organizations list`) and set the right " +
			"one (`daybook organizations source NAME --org ORG`), or write the document again.",
	},
	models.CodeSourceInvalid: {
		says: "the worker's program cannot read the organization's source.", back: true,
		mend: "The error names the statement and the column. Mend the program, and start its worker anew.",
	},
	models.CodeProcessorError: {says: "the processor returned an error or panicked.", mend: "The error says what is wrong; mend it in the worker's program."},
}

// jobCauses are those of background jobs and tasks.
var jobCauses = map[models.ErrorCode]cause{
	models.CodeNetworkError: {
		says: "the called server cannot be reached: it is down, or its address or the network is wrong.",
		mend: "Look whether the server answers from the worker's machine, such as the mail server that DAYBOOK_SMTP_HOST names.",
	},
	models.CodeUpstream5xx:  {says: "the called server answers that it cannot answer.", mend: "Ask its operator."},
	models.CodeRateLimited:  {says: "the called server asks for fewer calls.", mend: "Lower the type's limit, or raise that of the server."},
	models.CodeHandlerError: {says: "the handler returned an error, or panicked.", mend: "The error says what is wrong; mend it in the handler."},
	models.CodePayloadInvalid: {
		says: "the payload is not what the type asks for.", anew: true,
		mend: "Mend the program that enqueues them, and enqueue them anew: the same payload fails again, unless a setting of the worker refused it.",
	},
	models.CodePayloadTooLarge:      {says: "the payload is too large.", anew: true, mend: "Mend the program that enqueues them, and enqueue them anew."},
	models.CodeAuthenticationFailed: {says: "the called server refused the credentials.", mend: "Renew the type's credentials in the worker's environment, and restart the worker."},
	models.CodeNotFound:             {says: "what the job is about does not exist.", mend: "Make it, or cancel the jobs: `daybook jobs cancel --all --type TYPE --code NOT_FOUND`."},
	models.CodeHandlerMissing: {
		says: "no worker had a handler for the type.", back: true,
		mend: "Start a worker that has one. A built-in type needs its settings (docs/job-types.md); a worker logs at its start which ones it lacks.",
	},
	models.CodeReclaimed:    {says: "the worker did not renew its lease.", mend: "Look whether the worker is overloaded, or its machine sleeps."},
	models.CodeJobCancelled: {says: "the handler said that there is nothing left to do.", mend: "Nothing has to be done."},
}

// commonCauses are those of every kind.
var commonCauses = map[models.ErrorCode]cause{
	models.CodeWorkerLost: {
		says: "the process that worked on it ended each time, so it may be what ends it.",
		mend: "Find out what ends the worker: its log, its exit status, its memory (the kernel's log names a process that was killed for it).",
	},
	models.CodeTimeout: {says: "it did not end before its deadline.", mend: "Find out what it waited for, or give it more time."},
	models.CodeDatabaseError: {
		says: "the database refused a statement of it.", mend: "The error names the statement's fault: a constraint, a right, a trigger, a lock.",
	},
	models.CodeRowUnreadable: {
		says: "its row cannot be read or leased.", mend: "The error names the column: look for a constraint of the table that was dropped, or a damaged disk.",
	},
}

// causeOf is what a code means for jobs of a kind.
func causeOf(kind string, code models.ErrorCode) cause {
	own := jobCauses
	if kind == "accounting" {
		own = accountingCauses
	}
	for _, table := range []map[models.ErrorCode]cause{own, commonCauses} {
		if c, ok := table[code]; ok {
			return c
		}
	}
	return cause{says: "the error says what is wrong.", mend: "Mend what the error names."}
}

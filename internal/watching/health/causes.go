package health

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/models"
)

// cause is what an error code means in words, and what mends it. {org}, {id}, {type}, {code} and
// {period} stand for what is known of an example.
type cause struct {
	says string
	// mend is what to do before the jobs can succeed; back says that they are pending again by
	// themselves then.
	mend string
	back bool
	// anew says that the jobs fail again as they are: others are enqueued in their place.
	anew bool
	// words are in the errors that it is the cause of; empty: in any.
	words string
}

// steps are what to do about a finding of jobs that failed, with the command that has them worked
// again.
func (c cause) steps(f Finding) string {
	look := "Look at one: " + showCommand(f) + "."
	mend := c.mendOf(f)
	switch {
	case f.Kind == "tasks":
		return mend + " " + look + " A completed task stays as it is: the process that enqueued it enqueues another one."
	case c.back:
		return mend + " They are pending again by themselves then. " + look
	case f.Kind == "accounting":
		return fmt.Sprintf("%s %s Then: `daybook accounting retry --state failed%s --all`.", mend, look, ofCode(f))
	case c.anew:
		return fmt.Sprintf("%s %s The others: `daybook jobs cancel --all --type %s%s`.", mend, look, shell(f.Type), ofCode(f))
	default:
		return fmt.Sprintf("%s %s Then: `daybook jobs retry --all --type %s%s`.", mend, look, shell(f.Type), ofCode(f))
	}
}

// mendOf is mend with what is known of the finding's example in its place.
func (c cause) mendOf(f Finding) string {
	return strings.NewReplacer("{org}", shell(f.ExampleOrg), "{id}", shell(f.Example), "{type}", shell(f.Type), "{code}",
		f.ErrorCode).Replace(c.mend)
}

// ofCode is the flag that names the finding's error code; jobs that an adopted table brought may
// have none.
func ofCode(f Finding) string {
	if f.ErrorCode == "" {
		return ""
	}
	return " --code " + f.ErrorCode
}

// changeRules are the steps by which an organization's rules are changed.
const changeRules = "`daybook rules show --org {org} > rules.yaml` writes them into a file; change that, then " +
	"`daybook rules apply rules.yaml --org {org}`."

// firstOpenDay ends an advice.
const firstOpenDay = "have such documents posted on the first open day: `daybook periods policy first_open_day --org " +
	"{org}`."

// accountingCauses are those of documents that were not posted. More than one of a code: the first
// whose words are in the error.
var accountingCauses = map[models.ErrorCode][]cause{
	models.CodeNoMatchingRule: {
		{
			words: "has no active rule set", back: true,
			says: "the organization has no posting rules yet, or none is active.",
			mend: "Write its rules into a file, as https://github.com/daybook-dev/daybook/blob/main/docs/rules.md shows, such as rules.yaml, and apply them: `daybook rules " +
				"apply rules.yaml --org {org}`. " +
				"`daybook rules list --org {org}` shows whether there is one to activate.",
		},
		{
			words: "has no row", back: true,
			says: "a rule matches the document, but the map that the rule chooses an account by has no row for it.",
			mend: "Add the row that the error names: " + changeRules,
		},
		{
			back: true, says: "no posting rule of the organization matches the document.",
			mend: "Add a rule that matches: " + changeRules,
		},
	},
	models.CodeAmbiguousRule: {{
		says: "more than one posting rule matches the document.", back: true,
		mend: "Make the rules exclude each other: " + changeRules,
	}},
	models.CodeUnknownAccount: {{
		says: "a rule names an account that the organization's chart lacks.", back: true,
		mend: "If the account is right, write it into a file with the columns code,name,type, such as accounts.csv: " +
			"`daybook accounts import accounts.csv --org {org}` adds it to the chart. If the rule is wrong: " + changeRules,
	}},
	models.CodeUnbalanced: {{
		says: "debits and credits of the document differ by more than the rounding limit.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	}},
	models.CodeDocumentInvalid: {{
		says: "the document cannot be read, or lacks what a rule needs.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	}},
	models.CodeAmountNotRead: {{
		says: "the document states an amount that its rule does not read, so that nothing would be posted.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again. Or have the rule read the " +
			"field that it states: " + changeRules,
	}},
	models.CodeAmountMissing: {{
		says: "the document does not state the amount that it is about.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	}},
	models.CodeAmountSign: {{
		says: "an amount has a sign that the document's type does not allow (https://github.com/daybook-dev/daybook/blob/main/docs/import.md#amounts-and-signs).",
		back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	}},
	models.CodeTotalsDiffer: {{
		says: "the document's total is not what it says is payable and prepaid.", back: true,
		mend: "The application that wrote the document corrects it and marks it ready again.",
	}},
	models.CodePeriodClosed: {
		{
			words: "closed period from ", says: "the posting date lies in a closed period.", back: true,
			mend: "Open the period: `daybook periods open --org {org} --from {period}`. Or " + firstOpenDay,
		},
		{
			words: "lies in no period",
			says:  "the posting date lies in no period, and before one that is closed or before the first open one.",
			back:  true,
			mend: "Add a period for the date that the error names, with `daybook periods add` (`daybook periods list --org " +
				"{org}` shows those " +
				"that are there). Or " + firstOpenDay,
		},
		{
			says: "the posting date lies in a closed period.", back: true,
			mend: "Open the period with `daybook periods open` (`daybook periods list --org {org}` shows it). Or " +
				firstOpenDay,
		},
	},
	models.CodeDocumentUnknown: {{
		says: "the organization's source does not know the document.", back: true,
		mend: "If it was asked for by mistake: `daybook accounting cancel {org} {id}`. If the organization has the wrong " +
			"source on record " +
			"(`daybook organizations list` shows it), set the right one with `daybook organizations source`; else write " +
			"the document again.",
	}},
	models.CodeSourceInvalid: {{
		says: "the worker's program cannot read the organization's source.", back: true,
		mend: "The error names the statement and the column. Mend the program, and start its worker anew.",
	}},
	models.CodeProcessorError: {{
		says: "the processor returned an error or panicked.",
		mend: "The error says what is wrong; mend it in the worker's program.",
	}},
}

// jobCauses are those of background jobs and tasks.
var jobCauses = map[models.ErrorCode][]cause{
	models.CodeNetworkError: {{
		says: "the called server cannot be reached: it is down, or its address or the network is wrong.",
		mend: "Look whether the server answers from the worker's machine, such as the mail server that DAYBOOK_SMTP_HOST " +
			"names.",
	}},
	models.CodeUpstream5xx: {{says: "the called server answers that it cannot answer.", mend: "Ask its operator."}},
	models.CodeRateLimited: {{
		says: "the called server asks for fewer calls.",
		mend: "Lower the type's limit, or raise that of the server.",
	}},
	models.CodeHandlerError: {{
		says: "the handler returned an error, or panicked.",
		mend: "The error says what is wrong; mend it in the handler, or correct the payload (https://github.com/daybook-dev/daybook/blob/main/docs/edit-jobs.md).",
	}},
	models.CodePayloadInvalid: {
		{
			words: "unknown field", says: "the payload has a field that the worker's program does not know.",
			mend: "If that program is older than the one that enqueues, start the newer one; jobs that need it name a " +
				"version (https://github.com/daybook-dev/daybook/blob/main/docs/deploying.md). Else correct their payloads (https://github.com/daybook-dev/daybook/blob/main/docs/edit-jobs.md).",
		},
		{
			words: "_ALLOW_NETWORKS can allow it", says: "the worker may not ask the address, which is not public.",
			mend: "If it may, name its network in the variable that the error names, and restart the worker.",
		},
		{
			says: "the payload is not what the type asks for.", anew: true,
			mend: "Mend the program that enqueues them. The same payload fails again, unless a setting of the worker " +
				"refused it: correct it (https://github.com/daybook-dev/daybook/blob/main/docs/edit-jobs.md), or enqueue anew.",
		},
	},
	models.CodeKeyUnknown: {{
		says: "the worker does not have the key of the payload.",
		mend: "Give it the key, in its file of keys (https://github.com/daybook-dev/daybook/blob/main/docs/encryption.md).",
	}},
	models.CodeActivityNotStandalone: {{
		says: "the Temporal server starts no activity without a workflow around it.",
		mend: "Have it run Server 1.32 or newer with Standalone Activities on, or leave out `standalone` in the worker's " +
			"file (https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md).",
	}},
	models.CodeNotEncrypted: {{
		says: "members of the payload came in plain that the type encrypts.", anew: true,
		mend: "Mend the program that enqueues them (https://github.com/daybook-dev/daybook/blob/main/docs/encryption.md), and encrypt these: `daybook jobs edit ID " +
			"--payload @FILE --encrypt MEMBERS --retry`.",
	}},
	models.CodePayloadTooLarge: {{
		says: "the payload is too large.", anew: true,
		mend: "Mend the program that enqueues them, and enqueue them anew.",
	}},
	models.CodeAuthenticationFailed: {{
		says: "the called server refused the credentials.",
		mend: "Renew the type's credentials in the worker's environment, and restart the worker.",
	}},
	models.CodeNotFound: {{
		says: "what the job is about does not exist.",
		mend: "Make it, or cancel the jobs: `daybook jobs cancel --all --type {type} --code {code}`.",
	}},
	models.CodeHandlerMissing: {{
		says: "no worker had a handler for the type.", back: true,
		mend: "Start a worker that has one. A built-in type needs its settings (https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md); a worker logs at its " +
			"start which ones it lacks.",
	}},
	models.CodeReclaimed: {{
		says: "the worker did not renew its lease.",
		mend: "Look whether the worker is overloaded, or its machine sleeps.",
	}},
	models.CodeJobCancelled: {{
		says: "the handler said that there is nothing left to do.",
		mend: "Nothing has to be done.",
	}},
}

// commonCauses are those of every kind.
var commonCauses = map[models.ErrorCode][]cause{
	models.CodeWorkerLost: {{
		says: "the process that worked on it ended each time, so it may be what ends it.",
		mend: "Find out what ends the worker: its log, its exit status, its memory (the kernel's log names a process " +
			"that was killed for it).",
	}},
	models.CodeTimeout: {
		endedByPolicy(disposition.NotFinished), endedByPolicy(disposition.NotReturned),
		{
			says: "what it called did not answer in time.",
			mend: "Look why that is slow: the error names it. The time that a call has is a setting of the type " +
				"(https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md), or the handler's own.",
		},
	},
	models.CodeDatabaseError: {{
		says: "the database refused a statement of it.",
		mend: "The error names the statement's fault: a constraint, a right, a trigger, a lock.",
	}},
	models.CodeRowUnreadable: {{
		says: "its row cannot be read or leased.",
		mend: "The error names the column: look for a constraint of the table that was dropped, or a damaged disk.",
	}},
}

// endedByPolicy is the cause of an attempt of which the error has these words of the policy's end.
func endedByPolicy(words string) cause {
	return cause{
		words: words, says: "it took longer than its policy allows.",
		mend: "Find out what it waited for, or give it more time: the `Timeout` with which its handler or processor is " +
			"registered.",
	}
}

// causesOf are the causes that jobs of a kind may have, its own first.
func causesOf(kind string) []map[models.ErrorCode][]cause {
	own := jobCauses
	if kind == "accounting" {
		own = accountingCauses
	}
	return []map[models.ErrorCode][]cause{own, commonCauses}
}

// causesApart are the words by which causes of one code are told apart, those of a code in their
// order.
func causesApart(kind string) (apart []diagnosis.Words) {
	for _, table := range causesOf(kind) {
		for code, causes := range table {
			for _, c := range causes {
				if c.words != "" {
					apart = append(apart, diagnosis.Words{Code: string(code), In: c.words, Cause: c.says})
				}
			}
		}
	}
	return apart
}

// causeOf is what a code means for jobs of a kind, one of which failed with an error.
func causeOf(kind, code, says string) cause {
	for _, table := range causesOf(kind) {
		for _, c := range table[models.ErrorCode(code)] {
			if strings.Contains(says, c.words) {
				return c.of(says)
			}
		}
	}
	return cause{says: "the error says what is wrong.", mend: "Mend what the error names."}
}

// closedFrom finds the first day of the closed period that an error names.
var closedFrom = regexp.MustCompile(`closed period from (\d{4}-\d{2}-\d{2})`)

// of puts in what only the error says.
func (c cause) of(says string) cause {
	if m := closedFrom.FindStringSubmatch(says); m != nil {
		c.mend = strings.ReplaceAll(c.mend, "{period}", m[1])
	}
	return c
}

package jobs

import (
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/models"
)

// said is what an error says of its job.
type said struct {
	// word is the outermost one that decides; nil: none does, and the policy says whether the job is
	// tried again.
	word *outcome
	// final: the word is Final, or a code that is final.
	final bool
	// code is the outermost code, and remark what is wrong with the one that was given.
	code   models.ErrorCode
	remark string
}

// read reads an error from the outside in: the first word that decides counts, and the first code.
// It is the one reader of what errors say, of handlers of single jobs, bulk handlers and
// middleware.
func read(err error) said {
	s := said{}
	for each := range engine.Chain(err) {
		o, own := each.(*outcome) //nolint:errorlint // Chain unwraps
		if own && o.kind != coded {
			if !s.decided() {
				s.word, s.final = o, o.kind == final
			}
			continue
		}
		given := engine.OwnCode(each)
		if given == "" || s.code != "" {
			continue
		}
		s.code, s.remark = allowedCode(given)
		s.final = s.final || !s.decided() && models.JobErrorIsFinal(s.code)
	}
	if s.code == "" {
		s.code = models.CodeHandlerError
	}
	return s
}

// decided reports whether a word has decided already.
func (s said) decided() bool { return s.word != nil || s.final }

package jobs

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestCodesThatAreNone(t *testing.T) {
	t.Parallel()
	r := &registered{registry: NewRegistry(), policy: Policy{MaxAttempts: 3}}
	long := strings.Repeat("A", MaxCodeBytes+1)
	for _, code := range []string{"card declined", "card_declined", "CARD-DECLINED", "A\x00", "\xff", long} {
		a := r.judge(store.Job{Attempt: 1}, WithCode(models.ErrorCode(code), errors.New("the card is refused")))
		assert.Equal(t, models.CodeHandlerError, a.Code, code)
		assert.Equal(t, models.OutcomeRetried, a.Outcome, code)
		assert.Contains(t, a.Message, strings.Trim(strings.ToValidUTF8(code, ""), "\x00"))
		assert.Contains(t, a.Message, "the card is refused")
	}
	for _, code := range []models.ErrorCode{
		models.CodeSnoozed, models.CodeAwaitingCallback, models.CodeAwaitedCancelled,
		models.CodeHandlerMissing, models.CodeRowUnreadable, models.CodeResultNotStored,
	} {
		a := r.judge(store.Job{Attempt: 1}, WithCode(code, errors.New("the card is refused")))
		assert.Equal(t, models.CodeHandlerError, a.Code, code)
		assert.Equal(t, models.OutcomeRetried, a.Outcome, code)
		assert.Equal(t, "the code "+string(code)+" is Daybook's own: the card is refused", a.Message)
	}
	for _, code := range []string{"CARD_DECLINED", "E2_BIG", long[:MaxCodeBytes]} {
		a := r.judge(store.Job{Attempt: 1}, WithCode(models.ErrorCode(code), errors.New("the card is refused")))
		assert.Equal(t, models.ErrorCode(code), a.Code)
		assert.Equal(t, "the card is refused", a.Message)
	}
}

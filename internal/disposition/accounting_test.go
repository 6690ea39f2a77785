package disposition_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/models"
)

// treatments says what the design wants of each code at the second attempt and the third look.
func treatments() map[models.ErrorCode]disposition.Verdict {
	failed := disposition.Verdict{Outcome: models.OutcomeFailed}
	retried := disposition.Verdict{Outcome: models.OutcomeRetried, Delay: 15 * time.Minute}
	rescheduled := func(d time.Duration) disposition.Verdict {
		return disposition.Verdict{Outcome: models.OutcomeRescheduled, Delay: d}
	}
	return map[models.ErrorCode]disposition.Verdict{
		models.CodeDocumentDeleted:     {Outcome: models.OutcomeCancelled},
		models.CodeDocumentUnknown:     {Outcome: models.OutcomeFailed},
		models.CodeDocumentNotReady:    rescheduled(30 * time.Second),
		models.CodeVersionMismatch:     rescheduled(5 * time.Second),
		models.CodeDocumentLocked:      rescheduled(time.Second),
		models.CodeConfigurationLocked: rescheduled(time.Second),
		models.CodeNoMatchingRule:      failed,
		models.CodeAmbiguousRule:       failed,
		models.CodeUnknownAccount:      failed,
		models.CodeUnbalanced:          failed,
		models.CodePeriodClosed:        failed,
		models.CodeDocumentInvalid:     failed,
		models.CodeAmountNotRead:       failed,
		models.CodeAmountMissing:       failed,
		models.CodeAmountSign:          failed,
		models.CodeTotalsDiffer:        failed,
		models.CodeRowUnreadable:       failed,
		models.CodeSourceInvalid:       failed,
		models.CodePostedElsewhere:     failed,
		models.CodeFailedElsewhere:     failed,
		models.CodeDatabaseError:       retried,
		models.CodeTimeout:             retried,
		models.CodeProcessorError:      retried,
		models.CodeWorkerLost:          {Outcome: models.OutcomeRetried},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	assert.Equal(t, disposition.Verdict{Outcome: models.OutcomeCompleted}, disposition.Judge(nil, 6, 3, 0))
	for code, want := range treatments() {
		assert.Equal(t, want, disposition.Judge(models.Errorf(code, "x"), 2, 3, 0), code)
		// The last attempt: what is retried fails, everything else is as before.
		if want.Outcome == models.OutcomeRetried {
			want = disposition.Verdict{Outcome: models.OutcomeFailed}
		}
		assert.Equal(t, want, disposition.Judge(models.Errorf(code, "x"), models.MaxAttempts, 3, 0),
			"%s at the last attempt", code)
	}
	assert.Equal(t, disposition.Verdict{Outcome: models.OutcomeRetried, Delay: 7 * time.Second},
		disposition.Judge(models.Errorf("SOMETHING_ELSE", "x"), 1, 0, 7*time.Second),
		"an unknown code is a processor's error")
}

func TestNotReadySlowsDown(t *testing.T) {
	t.Parallel()
	for look, want := range map[int]time.Duration{
		1: 30 * time.Second, 10: 30 * time.Second, 11: time.Minute, 12: 2 * time.Minute, 13: 4 * time.Minute,
		14: 8 * time.Minute, 15: 15 * time.Minute, 16: 15 * time.Minute, math.MaxInt: 15 * time.Minute,
	} {
		v := disposition.Judge(models.Errorf(models.CodeDocumentNotReady, "x"), 1, look, 0)
		assert.Equal(t, disposition.Verdict{Outcome: models.OutcomeRescheduled, Delay: want}, v, "look %d", look)
	}
}

// Every constant of accounting_codes.go is in the error table, once, and what the table says of it
// is what Judge does.
func TestErrorTableHasEveryCode(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "../../models/accounting_codes.go", nil, 0)
	require.NoError(t, err)
	var constants []models.ErrorCode
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			value, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			constants = append(constants, models.ErrorCode(value))
		}
		return true
	})
	codes := make([]models.ErrorCode, 0, len(constants))
	for _, row := range disposition.Table() {
		codes = append(codes, row.Code)
		assert.Equal(t, row.Treatment, disposition.Treat(row.Code), row.Code)
		assert.Contains(t, treatments(), row.Code)
	}
	assert.ElementsMatch(t, constants, codes)
}

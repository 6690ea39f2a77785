package models_test

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
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/models"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		base    time.Duration
		attempt int
		want    time.Duration
	}{
		{0, 1, 5 * time.Minute},
		{0, 2, 15 * time.Minute},
		{0, 3, 45 * time.Minute},
		{0, 4, 2*time.Hour + 15*time.Minute},
		{0, 5, 6 * time.Hour},
		{0, 6, 6 * time.Hour},
		{-time.Second, 2, 15 * time.Minute},
		{time.Second, 1, time.Second},
		{time.Second, 5, 81 * time.Second},
		{2 * time.Hour, 2, 6 * time.Hour},
		{7 * time.Hour, 1, 6 * time.Hour},
		{5 * time.Minute, 0, 5 * time.Minute},
		{5 * time.Minute, -3, 5 * time.Minute},
		{math.MaxInt64, 2, 6 * time.Hour},
		{1, math.MaxInt, 6 * time.Hour},
	} {
		assert.Equal(t, c.want, models.Backoff(c.base, c.attempt), "base %s, attempt %d", c.base, c.attempt)
	}
}

func TestBackoffNeverOverflowsOrShrinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64().Draw(t, "base"))
		attempt := rapid.IntRange(1, 200).Draw(t, "attempt")
		d := models.Backoff(base, attempt)
		require.Positive(t, d)
		require.LessOrEqual(t, d, models.MaxBackoff)
		require.GreaterOrEqual(t, models.Backoff(base, attempt+1), d)
		if base > 0 && attempt == 1 {
			require.Equal(t, min(base, models.MaxBackoff), d)
		}
	})
}

// treatments says what the design wants of each code at the second attempt and the third look.
func treatments() map[models.ErrorCode]models.Verdict {
	failed := models.Verdict{Outcome: models.OutcomeFailed}
	retried := models.Verdict{Outcome: models.OutcomeRetried, Delay: 15 * time.Minute}
	rescheduled := func(d time.Duration) models.Verdict {
		return models.Verdict{Outcome: models.OutcomeRescheduled, Delay: d}
	}
	return map[models.ErrorCode]models.Verdict{
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
		models.CodeRowUnreadable:       failed,
		models.CodeDatabaseError:       retried,
		models.CodeTimeout:             retried,
		models.CodeProcessorError:      retried,
		models.CodeWorkerLost:          {Outcome: models.OutcomeRetried},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	assert.Equal(t, models.Verdict{Outcome: models.OutcomeCompleted}, models.Judge(nil, 6, 3, 0))
	for code, want := range treatments() {
		assert.Equal(t, want, models.Judge(models.Errorf(code, "x"), 2, 3, 0), code)
		// The last attempt: what is retried fails, everything else is as before.
		if want.Outcome == models.OutcomeRetried {
			want = models.Verdict{Outcome: models.OutcomeFailed}
		}
		assert.Equal(t, want, models.Judge(models.Errorf(code, "x"), models.MaxAttempts, 3, 0), "%s at the last attempt", code)
	}
	assert.Equal(t, models.Verdict{Outcome: models.OutcomeRetried, Delay: 7 * time.Second},
		models.Judge(models.Errorf("SOMETHING_ELSE", "x"), 1, 0, 7*time.Second), "an unknown code is a processor's error")
}

func TestNotReadySlowsDown(t *testing.T) {
	t.Parallel()
	for look, want := range map[int]time.Duration{
		1: 30 * time.Second, 10: 30 * time.Second, 11: time.Minute, 12: 2 * time.Minute, 13: 4 * time.Minute,
		14: 8 * time.Minute, 15: 15 * time.Minute, 16: 15 * time.Minute, math.MaxInt: 15 * time.Minute,
	} {
		v := models.Judge(models.Errorf(models.CodeDocumentNotReady, "x"), 1, look, 0)
		assert.Equal(t, models.Verdict{Outcome: models.OutcomeRescheduled, Delay: want}, v, "look %d", look)
	}
}

// Every constant of accounting_codes.go is in the error table, once, and what the table says of it is what Judge does.
func TestErrorTableHasEveryCode(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "accounting_codes.go", nil, 0)
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
	for _, row := range models.ErrorTable() {
		codes = append(codes, row.Code)
		assert.Equal(t, row.Treatment, models.Treat(row.Code), row.Code)
		assert.Contains(t, treatments(), row.Code)
	}
	assert.ElementsMatch(t, constants, codes)
}

func TestJobErrorSpeaks(t *testing.T) {
	t.Parallel()
	require.EqualError(t, models.Errorf(models.CodeUnbalanced, "off by %d", 10), "UNBALANCED: off by 10")
}

package handlers

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

func TestOpenBucketSaysWhatToDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	for name, c := range map[string]struct{ address, says string }{
		"a path":            {"/var/topsecret", "must be a URL, such as file:///"},
		"a scheme alone":    {"topsecret:bucket", "must be a URL, such as file:///"},
		"unknown scheme":    {"s3://AKIA:topsecret@bucket?secret=topsecret", "it knows file"},
		"no directory":      {"file://" + dir + "/topsecret", "does not exist: make it, or add create_dir=1"},
		"not a directory":   {"file://" + dir + "/file?metadata=skip", "must name a directory"},
		"unknown parameter": {"file://" + dir + "?token=topsecret", "what follows the ?"},
		"no URL":            {"file://%zz/topsecret", "must name a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewReport(t.Context(), new(pgxpool.Pool), ReportConfig{Bucket: c.address})
			require.ErrorContains(t, err, c.says)
			assert.Contains(t, err.Error(), "REPORTS_BUCKET")
			assert.NotContains(t, err.Error(), "topsecret")
			assert.NotContains(t, err.Error(), "AKIA")
		})
	}
}

// broken is a storage that fails: when a file is begun, or when it is closed.
type broken struct {
	driver.Bucket // nil: nothing else is asked of it
	err           error
	code          gcerrors.ErrorCode
	atClose       bool
}

func (b *broken) ErrorCode(error) gcerrors.ErrorCode { return b.code }
func (b *broken) Close() error                       { return nil }

func (b *broken) NewTypedWriter(context.Context, string, string, *driver.WriterOptions) (driver.Writer, error) {
	if b.atClose {
		return brokenWriter{b.err}, nil
	}
	return nil, b.err
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w brokenWriter) Close() error                { return w.err }

func TestReportStorageFailures(t *testing.T) {
	t.Parallel()
	answered := errors.New(`Put "https://AKIA:topsecret@bucket.example.com/reports/key.csv?X-Amz-Signature=topsecret": the storage said no`)
	at := func(errno syscall.Errno) error {
		return &fs.PathError{Op: "open", Path: "/var/lib/daybook/reports/org_1", Err: errno}
	}
	for name, c := range map[string]struct {
		err   error
		code  gcerrors.ErrorCode
		want  models.ErrorCode
		state models.JobState
		says  string
	}{
		"refused": {
			answered, gcerrors.PermissionDenied, models.CodeAuthenticationFailed, models.JobFailed,
			"let the worker write to its bucket (DAYBOOK_REPORTS_BUCKET)",
		},
		"not writable": {
			at(syscall.EACCES), gcerrors.Unknown, models.CodeAuthenticationFailed, models.JobFailed,
			"let the worker write",
		},
		"mounted read-only": {
			at(syscall.EROFS), gcerrors.Unknown, models.CodeAuthenticationFailed, models.JobFailed,
			"let the worker write",
		},
		"no bucket": {
			answered, gcerrors.NotFound, models.CodeNotFound, models.JobFailed,
			"the report's bucket does not exist: make it",
		},
		"too many requests": {
			answered, gcerrors.ResourceExhausted, models.CodeRateLimited, models.JobPending,
			"fewer requests",
		},
		"too late": {answered, gcerrors.DeadlineExceeded, models.CodeTimeout, models.JobPending, "in time"},
		"another disk": {
			at(syscall.EXDEV), gcerrors.Unknown, models.CodeNetworkError, models.JobPending,
			"add no_tmp_dir=1 to DAYBOOK_REPORTS_BUCKET",
		},
		"full": {at(syscall.ENOSPC), gcerrors.Unknown, models.CodeNetworkError, models.JobPending, "make room"},
		"away": {answered, gcerrors.Unknown, models.CodeNetworkError, models.JobPending, "check DAYBOOK_REPORTS_BUCKET"},
	} {
		for when, atClose := range map[string]bool{"at the beginning": false, "at the end": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.books()
				h := newReportIn(b.Pool, blob.NewBucket(&broken{err: c.err, code: c.code, atClose: atClose}), 0)
				t.Cleanup(func() { assert.NoError(t, h.Close()) })
				jobs.Register(b.registry, ReportPolicy(), h.Handle)
				r := b.run(Report{Kind: ReportTrialBalance})
				assert.Equal(t, c.state, r.State)
				assert.Equal(t, c.want, r.Code, r.Error)
				assert.Contains(t, r.Error, c.says)
				assert.NotContains(t, b.everything(), "topsecret")
				if errors.Is(c.err, answered) {
					assert.Contains(t, r.Error, "https://bucket.example.com/reports/key.csv", "what is no secret stays")
					assert.Contains(t, r.Error, "the storage said no")
				}
			})
		}
	}
}

// A directory that the worker may not write to.
func TestReportToADirectoryThatIsNotWritable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("the superuser may write everywhere")
	}
	b := setup(t)
	b.books()
	dir := filepath.Join(t.TempDir(), "reports")
	require.NoError(t, os.Mkdir(dir, 0o500))
	b.variables(map[string]string{"DAYBOOK_REPORTS_BUCKET": "file://" + dir + "?no_tmp_dir=1"})
	r := b.run(Report{Kind: ReportJournal})
	assert.Equal(t, models.JobFailed, r.State)
	assert.Equal(t, models.CodeAuthenticationFailed, r.Code, r.Error)
	assert.Contains(t, r.Error, "let the worker write")
}

func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no address: 14:30?":                              "no address: 14:30?",
		"file:///var/lib/reports":                         "file:///var/lib/reports",
		`"https://u:p@h/a?sig=x#y": no; s3://b?k=v again`: `"https://h/a?…": no; s3://b?… again`,
		"https://h#x":                                     "https://h?…",
	} {
		assert.Equal(t, want, withoutSecrets(text))
	}
}

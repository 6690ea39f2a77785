package handlers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"syscall"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // reports may be written to a directory: file:///…
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/models"
)

// exampleBucket is an address as it should be.
const exampleBucket = "file:///var/lib/daybook/reports?no_tmp_dir=1"

// openBucket opens a bucket by its address. Its errors repeat nothing of the address but the
// scheme: it may hold credentials. setting begins its errors: the type and the variable that hold
// the address.
func openBucket(ctx context.Context, setting, address string) (*blob.Bucket, error) {
	schemes := blob.DefaultURLMux()
	scheme, _, isURL := strings.Cut(address, "://")
	if !isURL {
		return nil, errors.New(setting + " must be a URL, such as " + exampleBucket)
	}
	if !schemes.ValidBucketScheme(scheme) {
		return nil, fmt.Errorf("%s has a scheme for which this program has no driver; it knows %s. Another one is there "+
			"in a program that imports its package of gocloud.dev/blob", setting, strings.Join(schemes.BucketSchemes(), ", "))
	}
	bucket, err := schemes.OpenBucket(ctx, address)
	switch {
	case err == nil:
		return bucket, nil
	case scheme == "file" && errors.Is(err, fs.ErrNotExist):
		return nil, errors.New(setting + " names a directory that does not exist: make it, or add create_dir=1 to the URL")
	case isRefusal(err):
		return nil, errors.New(setting + " is refused: let the worker read and write there")
	case scheme == "file":
		return nil, errors.New(setting +
			" cannot be opened: it must name a directory, and what follows the ? must be right, such as " + exampleBucket)
	}
	return nil, fmt.Errorf("%s cannot be opened: check the bucket's name, the credentials and the parameters of the "+
		"driver of %s", setting, scheme)
}

// storageFailure says what becomes of a job whose file cannot be written, and what to do.
func storageFailure(err error) *failure {
	text := clip(withoutSecrets(err.Error()))
	switch code := gcerrors.Code(err); {
	case code == gcerrors.PermissionDenied, isRefusal(err):
		return fail(models.CodeAuthenticationFailed, "the storage refuses the report: let the worker write to its bucket "+
			"(DAYBOOK_REPORTS_BUCKET), and retry the job: %s", text)
	case code == gcerrors.NotFound:
		return fail(models.CodeNotFound,
			"the report's bucket does not exist: make it, or correct DAYBOOK_REPORTS_BUCKET, and retry the job: %s", text)
	case code == gcerrors.ResourceExhausted:
		return fail(models.CodeRateLimited, "the storage asks for fewer requests: %s", text)
	case code == gcerrors.DeadlineExceeded, isTimeout(err):
		return fail(models.CodeTimeout, "the storage did not accept the report in time: %s", text)
	case errors.Is(err, syscall.EXDEV):
		return fail(models.CodeNetworkError,
			"the report cannot be put in place: add no_tmp_dir=1 to DAYBOOK_REPORTS_BUCKET: %s", text)
	case errors.Is(err, syscall.ENOSPC):
		return fail(models.CodeNetworkError, "the storage of the reports is full: make room: %s", text)
	}
	return fail(models.CodeNetworkError,
		"the storage does not accept the report; if this continues, check DAYBOOK_REPORTS_BUCKET: %s", text)
}

// isRefusal reports whether a file system does not let the worker write.
func isRefusal(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Parts of URLs that may hold secrets: who asks, and what follows the path (the signature of a
// signed request, for instance).
var (
	urlUser  = regexp.MustCompile(`(://)[^\s/?#"']*@`)
	urlQuery = regexp.MustCompile(`(://[^\s?#"']*)[?#][^\s"']*`)
)

// withoutSecrets leaves out of the URLs in a text what may be secret.
func withoutSecrets(text string) string {
	return urlQuery.ReplaceAllString(urlUser.ReplaceAllString(text, "$1"), "$1?…")
}

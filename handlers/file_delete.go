package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
)

// FileDelete is the payload of the type file_delete: one object of blob storage.
type FileDelete struct {
	// Bucket is the name under which the configuration has a bucket, or which the service of signed
	// addresses knows.
	Bucket string `json:"bucket"`
	// ObjectKey is the object's key in the bucket.
	ObjectKey string `json:"object_key"`
}

// JobType is "file_delete".
func (FileDelete) JobType() string { return "file_delete" }

// FileDeletePolicy is the type's policy: 5 attempts, 30 s to 4 minutes between them, each of up to
// a minute.
func FileDeletePolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 5, Timeout: time.Minute, Base: 30 * time.Second, Factor: 2, Cap: 10 * time.Minute}
}

// FileDeleteConfig says where objects are deleted. Buckets, SignerURL, or both are required.
type FileDeleteConfig struct {
	// Buckets are URLs for gocloud.dev/blob by the names that payloads have:
	// recordings=file:///var/lib/recordings. For another storage than files, the program has to
	// import its driver.
	Buckets map[string]string `env:"FILES_BUCKETS" envKeyValSeparator:"="`
	// SignerURL is a service that is asked, for every other bucket, for a signed address which
	// deletes the object: docs/job-types.md has the request. Secrets finds its token, if there is
	// one.
	SignerURL string `env:"FILES_SIGNER_URL"`
	// Timeout bounds each request, and each deletion; default 20 s. A signed deletion is two
	// requests: together they should be shorter than the policy's.
	Timeout time.Duration `env:"FILES_TIMEOUT"`
	// Organizations are those whose jobs may delete any object; * is all. Jobs of every other
	// organization may delete objects whose key begins with the organization's id, in which % and /
	// are written %25 and %2F, and a slash.
	Organizations []string `env:"FILES_ORGS"`
	// Secrets finds the token of the service.
	Secrets Secrets `env:"-"`
}

// FileDeleteHandler works jobs and tasks of the type file_delete. It is safe for concurrent use.
type FileDeleteHandler struct {
	config  FileDeleteConfig
	buckets map[string]*blob.Bucket
	// directories are those of the buckets that are files.
	directories map[string]string
	upstream
}

// NewFileDelete opens the buckets and returns a handler; Close closes them.
func NewFileDelete(ctx context.Context, c FileDeleteConfig) (*FileDeleteHandler, error) {
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	switch {
	case len(c.Buckets) == 0 && c.SignerURL == "":
		return nil, errors.New("file_delete: FILES_BUCKETS or FILES_SIGNER_URL is required")
	case c.SignerURL != "" && !isSafe(c.SignerURL):
		return nil, errors.New("file_delete: FILES_SIGNER_URL must be an address of https, or of this machine, without user and " +
			"password")
	case c.Timeout < 0:
		return nil, errors.New("file_delete: FILES_TIMEOUT must not be negative")
	}
	h := &FileDeleteHandler{
		config: c, buckets: map[string]*blob.Bucket{}, directories: map[string]string{},
		upstream: newUpstream(c.Timeout),
	}
	for name, address := range c.Buckets {
		bucket, err := openBucket(ctx, "file_delete: FILES_BUCKETS: "+name, strings.TrimSpace(address))
		if err != nil {
			return nil, errors.Join(err, h.Close())
		}
		h.buckets[strings.TrimSpace(name)] = bucket
		if u, err := url.Parse(strings.TrimSpace(address)); err == nil && u.Scheme == fileblob.Scheme {
			h.directories[strings.TrimSpace(name)] = filepath.FromSlash(u.Path)
		}
	}
	return h, nil
}

// Close closes the buckets, and gives idle connections back.
func (h *FileDeleteHandler) Close() error {
	errs := []error{h.close()}
	for _, bucket := range h.buckets {
		errs = append(errs, bucket.Close())
	}
	return errors.Join(errs...)
}

// Handle deletes one object. One that is gone already is a success, so that an attempt may be
// repeated. It fails with RATE_LIMITED, UPSTREAM_5XX, TIMEOUT or NETWORK_ERROR, which are tried
// again, and finally with AUTHENTICATION_FAILED (the storage or the service refuses, or the
// organization may not delete this object), NOT_FOUND (there is no such bucket) or PAYLOAD_INVALID.
func (h *FileDeleteHandler) Handle(ctx context.Context, job *jobs.Job[FileDelete]) error {
	c := callOf(job)
	if !h.allows(c.orgID, c.payload.ObjectKey) {
		return outcome(fail(models.CodeAuthenticationFailed,
			"jobs of the organization %s may only delete objects whose key begins with %s: %sFILES_ORGS names those that "+
				"may delete any", clip(c.orgID), clip(orgPrefix(c.orgID)), environmentPrefix))
	}
	removed, err := h.remove(ctx, &c.payload)
	if err != nil {
		return outcome(err)
	}
	c.result(removed)
	return nil
}

// allows reports whether a job of an organization may delete an object.
func (h *FileDeleteHandler) allows(org, key string) bool {
	return strings.HasPrefix(key, orgPrefix(org)) ||
		slices.ContainsFunc(h.config.Organizations, func(o string) bool { return bound(o, org) })
}

// FileDeleteResult is the result of a job, and the worker_payload of a task, of the type
// file_delete.
type FileDeleteResult struct {
	// Deleted: it was there until now. A service of signed addresses may say so of one that was gone.
	Deleted bool `json:"deleted"`
}

// maxObjectKey is how many bytes the key of an object may have.
const maxObjectKey = 1024

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p FileDelete) Check() error {
	switch {
	case p.Bucket == "":
		return invalid("bucket is empty")
	case p.ObjectKey == "":
		return invalid("object_key is empty")
	case len(p.ObjectKey) > maxObjectKey || !utf8.ValidString(p.ObjectKey):
		return invalid("object_key has more than %d bytes, or is not UTF-8", maxObjectKey)
	case slices.Contains(strings.Split(p.ObjectKey, "/"), ".."):
		return invalid("object_key leads to a parent")
	}
	return nil
}

// remove deletes one object.
func (h *FileDeleteHandler) remove(ctx context.Context, p *FileDelete) (FileDeleteResult, error) {
	if err := p.Check(); err != nil {
		return FileDeleteResult{}, err
	}
	bucket, ok := h.buckets[p.Bucket]
	switch {
	case ok:
		return h.removeFrom(ctx, bucket, p)
	case h.config.SignerURL != "":
		return h.removeSigned(ctx, p)
	}
	return FileDeleteResult{},
		invalid("the bucket %s is none of those that %sFILES_BUCKETS names", clip(p.Bucket), environmentPrefix)
}

// removeFrom deletes an object of a bucket that is open.
func (h *FileDeleteHandler) removeFrom(ctx context.Context, bucket *blob.Bucket,
	p *FileDelete,
) (FileDeleteResult, error) {
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	err := bucket.Delete(ctx, p.ObjectKey)
	if err == nil {
		return FileDeleteResult{Deleted: true}, nil
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		// It is the object that is gone, and not the bucket.
		switch there, asked := h.isThere(ctx, bucket, p.Bucket); {
		case asked != nil:
			err = asked
		case there:
			return FileDeleteResult{}, nil
		default:
			return FileDeleteResult{},
				fail(models.CodeNotFound, "there is no bucket %s: make it, or correct %sFILES_BUCKETS", clip(p.Bucket),
					environmentPrefix)
		}
	}
	return FileDeleteResult{}, notDeleted(p.Bucket, err)
}

// isThere reports whether a bucket exists. The driver of files says so of a directory that does
// not.
func (h *FileDeleteHandler) isThere(ctx context.Context, bucket *blob.Bucket, name string) (bool, error) {
	if dir := h.directories[name]; dir != "" {
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	return bucket.IsAccessible(ctx)
}

// notDeleted says what an error of the storage leads to.
func notDeleted(bucket string, err error) *failure {
	text := fmt.Sprintf("the storage does not delete an object of the bucket %s: %s", clip(bucket),
		clip(withoutSecrets(err.Error())))
	switch code := gcerrors.Code(err); {
	case code == gcerrors.PermissionDenied, isRefusal(err):
		return fail(models.CodeAuthenticationFailed, "%s", text)
	case code == gcerrors.ResourceExhausted:
		return fail(models.CodeRateLimited, "%s", text)
	case code == gcerrors.DeadlineExceeded, isTimeout(err):
		return fail(models.CodeTimeout, "%s", text)
	case code == gcerrors.InvalidArgument:
		return invalid("%s", text)
	}
	return fail(models.CodeNetworkError, "%s", text)
}

func init() {
	configured := func(s *environment) (*FileDeleteHandler, error) {
		config, err := parse[FileDeleteConfig](s)
		if err != nil {
			return nil, err
		}
		if len(config.Buckets) == 0 && config.SignerURL == "" {
			return nil, notConfiguredError("set DAYBOOK_FILES_BUCKETS, such as recordings=file:///var/lib/recordings, or " +
				"DAYBOOK_FILES_SIGNER_URL")
		}
		config.Secrets = s.secrets
		h, err := NewFileDelete(context.Background(), config)
		if err == nil {
			s.onClose(h.Close)
		}
		return h, err
	}
	builtins = append(builtins, builtin{name: "file_delete", register: func(r *jobs.Registry, s *environment) error {
		h, err := configured(s)
		if err == nil {
			jobs.Register(r, s.policy(FileDeletePolicy()), h.Handle)
		}
		return err
	}, process: func(r *tasks.Registry, s *environment) error {
		h, err := configured(s)
		if err == nil {
			tasks.Register(r, "file_delete", s.taskPolicy(FileDeletePolicy()), h.Process)
		}
		return err
	}})
}

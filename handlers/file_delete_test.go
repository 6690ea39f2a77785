package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// object writes an object of a bucket of files, and returns its path.
func object(t *testing.T, dir, key string) string {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(key))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	return path
}

// bucketURL is a directory as a bucket.
func bucketURL(dir string) string { return "file://" + dir + "?no_tmp_dir=1&metadata=skip" }

// TestFileIsDeleted: one that is there, and the same again when it is gone.
func TestFileIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	path := object(t, dir, org+"/a/1.ogg")
	b.variables(map[string]string{"DAYBOOK_FILES_BUCKETS": "recordings=" + bucketURL(dir) + ",other=" +
		bucketURL(t.TempDir())})
	p := FileDelete{Bucket: "recordings", ObjectKey: org + "/a/1.ogg"}

	assert.True(t, result[FileDeleteResult](t, b.run(p)).Deleted)
	assert.NoFileExists(t, path)
	assert.False(t, result[FileDeleteResult](t, b.run(p)).Deleted)
}

func TestFileIsNotDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		payload FileDelete
		code    models.ErrorCode
		text    string
	}{
		"of another organization": {
			FileDelete{"recordings", "other/1.ogg"},
			models.CodeAuthenticationFailed,
			"DAYBOOK_FILES_ORGS",
		},
		"beside the organization": {
			FileDelete{"recordings", org + "-2/1.ogg"},
			models.CodeAuthenticationFailed,
			"DAYBOOK_FILES_ORGS",
		},
		"above the organization": {
			FileDelete{"recordings", org + "/../other/1.ogg"},
			models.CodePayloadInvalid,
			"leads to a parent",
		},
		"of a bucket that is unknown": {
			FileDelete{"videos", org + "/1.ogg"},
			models.CodePayloadInvalid,
			"DAYBOOK_FILES_BUCKETS",
		},
		"of a bucket that is gone": {FileDelete{"gone", org + "/1.ogg"}, models.CodeNotFound, "there is no bucket gone"},
		"without a key":            {FileDelete{"recordings", ""}, models.CodeAuthenticationFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			dir, gone := t.TempDir(), filepath.Join(t.TempDir(), "gone")
			require.NoError(t, os.Mkdir(gone, 0o755))
			path := object(t, dir, "other/1.ogg")
			b.variables(map[string]string{"DAYBOOK_FILES_BUCKETS": "recordings=" + bucketURL(dir) + ",gone=" +
				bucketURL(gone), "DAYBOOK_FILES_ORGS": "acme"})
			require.NoError(t, os.Remove(gone))
			j := b.run(c.payload)
			assert.Equal(t, models.JobFailed, j.State)
			assert.Equal(t, c.code, j.Code)
			assert.Contains(t, j.Error, c.text)
			assert.FileExists(t, path)
		})
	}
}

// TestFilesOfAllOrganizations: * lets the jobs of every organization delete any object.
func TestFilesOfAllOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	path := object(t, dir, "other/1.ogg")
	b.variables(map[string]string{"DAYBOOK_FILES_BUCKETS": "recordings=" + bucketURL(dir), "DAYBOOK_FILES_ORGS": "*"})
	assert.True(t, result[FileDeleteResult](t, b.run(FileDelete{Bucket: "recordings", ObjectKey: "other/1.ogg"})).Deleted)
	assert.NoFileExists(t, path)
}

// TestFilesOfAnOrganizationsOwn: an id that has a slash, or that is a directory's name for itself,
// is written in keys so that no organization's files are below those of another.
func TestFilesOfAnOrganizationsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		org, key string
		deletes  bool
	}{
		"its own":                       {"a", "a/b%2Fc/1.ogg", true},
		"its own of an id with a dot":   {"a.example", "a.example/1.ogg", true},
		"its own of an id with a slash": {"a/b", "a%2Fb/1.ogg", true},
		"below the other's id":          {"a/b", "a/b/1.ogg", false},
		"written as the other's id":     {"a%2Fb", "a%2Fb/1.ogg", false},
		"of the directory itself":       {".", "./a/1.ogg", false},
		"of the directory above":        {"..", "../a/1.ogg", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			dir := t.TempDir()
			path := object(t, dir, strings.TrimPrefix(c.key, "../"))
			b.variables(map[string]string{"DAYBOOK_FILES_BUCKETS": "recordings=" + bucketURL(dir)})
			id := b.enqueueFor(c.org, FileDelete{Bucket: "recordings", ObjectKey: c.key}, queue.JobOptions{})
			b.work()
			j := b.job(id)
			if c.deletes {
				assert.True(t, result[FileDeleteResult](t, j).Deleted)
				return
			}
			assert.Equal(t, models.CodeAuthenticationFailed, j.Code)
			assert.Contains(t, j.Error, "begins with "+orgPrefix(c.org))
			assert.FileExists(t, path)
		})
	}
}

// signs is a service that signs addresses of a storage.
func signs(t *testing.T, storage *receiver) *receiver {
	t.Helper()
	return receive(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"url": "%s/recordings/1.ogg?Signature=s3cret"}`, storage.URL)
	})
}

// TestFileIsDeletedByASignedAddress has the storage answer in each way.
func TestFileIsDeletedByASignedAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		deleted bool
		code    models.ErrorCode
		state   models.JobState
	}{
		"deleted":        {204, "", true, "", models.JobCompleted},
		"gone":           {404, "<Code>NoSuchKey</Code>", false, "", models.JobCompleted},
		"no such bucket": {404, "<Code>NoSuchBucket</Code>", false, models.CodeNotFound, models.JobFailed},
		"refused":        {403, "", false, models.CodeAuthenticationFailed, models.JobFailed},
		"out of order":   {503, "", false, models.CodeUpstream5xx, models.JobPending},
		"elsewhere":      {307, "", false, models.CodeHandlerError, models.JobFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			})
			signer := signs(t, storage)
			b := setup(t)
			b.variables(map[string]string{
				"DAYBOOK_FILES_SIGNER_URL":   signer.URL + "/sign",
				"DAYBOOK_FILES_SIGNER_TOKEN": "t0psecret",
			})

			j := b.run(FileDelete{Bucket: "recordings", ObjectKey: org + "/1.ogg"})

			assert.Equal(t, c.state, j.State, j.Error)
			assert.Equal(t, c.code, j.Code)
			if c.state == models.JobCompleted {
				assert.Equal(t, c.deleted, result[FileDeleteResult](t, j).Deleted)
			}
			require.Len(t, signer.requests(), 1)
			asked := signer.requests()[0]
			assert.Equal(t, "POST /sign", asked.method+" "+asked.path)
			assert.Equal(t, "Bearer t0psecret", asked.header.Get("Authorization"))
			assert.JSONEq(t, `{"method": "DELETE", "bucket": "recordings", "object_key": "`+org+`/1.ogg"}`,
				string(asked.body))
			require.Len(t, storage.requests(), 1)
			assert.Equal(t, "DELETE /recordings/1.ogg?Signature=s3cret",
				storage.requests()[0].method+" "+storage.requests()[0].path)
			assert.Empty(t, storage.requests()[0].header.Get("Authorization"))
			assert.NotContains(t, b.everything(), "s3cret")
			assert.NotContains(t, b.everything(), "t0psecret")
		})
	}
}

// TestSignerFails: each answer of the service that is no address, and nothing is deleted.
func TestSignerFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		url    string
		code   models.ErrorCode
		state  models.JobState
	}{
		"unknown":     {404, "", models.CodeNotFound, models.JobFailed},
		"refused":     {401, "", models.CodeAuthenticationFailed, models.JobFailed},
		"no address":  {200, "", models.CodeHandlerError, models.JobPending},
		"not by http": {200, "file:///etc/passwd", models.CodeHandlerError, models.JobPending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signer := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_ = json.NewEncoder(w).Encode(signAnswer{URL: c.url})
			})
			b := setup(t)
			b.variables(map[string]string{"DAYBOOK_FILES_SIGNER_URL": signer.URL})
			j := b.run(FileDelete{Bucket: "recordings", ObjectKey: org + "/1.ogg"})
			assert.Equal(t, c.state, j.State)
			assert.Equal(t, c.code, j.Code)
		})
	}
}

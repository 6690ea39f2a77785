package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// account is an account with recordings, each of which is an object in blob storage.
type account struct {
	id    int64
	files []int64
}

// account makes one with a profile, a cue and n recordings, as an application does: an intent, an
// upload, and its completion.
func (b *bundle) account(n int) account {
	b.t.Helper()
	var a account
	var profile int64
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`INSERT INTO accounts.account (name, email) VALUES ('Ada', 'ada@example.com') RETURNING account_id`).Scan(&a.id))
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`INSERT INTO accounts.profile (account_id, display_name) VALUES ($1, 'Ada L.') RETURNING profile_id`,
		a.id).Scan(&profile))
	for i := range n {
		var intent, file int64
		require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `
WITH c AS (INSERT INTO learning.cue (text) VALUES ('Say hello') RETURNING cue_id)
INSERT INTO files.upload_intent (profile_id, cue_id, bucket, object_key) SELECT $1, cue_id, 'recordings', $2 FROM c RETURNING upload_intent_id`,
			profile, object(a.id, i)).Scan(&intent))
		require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT file_id FROM api.complete_recording_upload($1)`,
			intent).Scan(&file))
		a.files = append(a.files, file)
	}
	return a
}

// object is the name of an account's i-th recording.
func object(account int64, i int) string {
	return fmt.Sprintf("account-%d/recording-%d.ogg", account, i)
}

// deletion calls the function that an application calls, and returns what it has against it.
func (b *bundle) deletion(account int64) string {
	b.t.Helper()
	return b.text(`SELECT api.request_account_deletion($1)`, account)
}

func (b *bundle) flags(account int64) string {
	b.t.Helper()
	return b.text(`SELECT string_agg(flag, ', ' ORDER BY flag) FROM accounts.account_flag WHERE account_id = $1`, account)
}

// ended: no task is left, of any process.
func (b *bundle) ended() bool { return b.count(`SELECT count(*) FROM queues.open_task`) == 0 }

// breakAnonymization has accounts.anonymize_account raise an error.
func (b *bundle) breakAnonymization() {
	b.t.Helper()
	b.exec(`CREATE OR REPLACE FUNCTION accounts.anonymize_account(_account_id bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'not today'; END$$`)
}

// requireHappyPath is what the checklist says of an account that was deleted.
func (b *bundle) requireHappyPath(a account) {
	b.t.Helper()
	assert.Equal(b.t, "anonymized, deleted", b.flags(a.id))
	for _, file := range a.files {
		assert.Equal(b.t, 1, b.count(`SELECT count(*) FROM files.file_deletion_task t JOIN files.file_deletion_task_succeeded s USING (file_deletion_task_id) WHERE t.file_id = $1`, file))
		assert.Equal(b.t, 1, b.count(`SELECT count(*) FROM files.file_metadata WHERE file_id = $1 AND metadata @> '{"deleted": true, "kind": "recording"}'`, file))
	}
	assert.Equal(b.t, 1, b.count(`SELECT count(*) FROM accounts.account_anonymization_task t JOIN accounts.account_anonymization_task_succeeded s USING (account_anonymization_task_id)
 WHERE t.account_id = $1`, a.id))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM accounts.account JOIN accounts.profile USING (account_id) WHERE account_id = $1 AND (email IS NOT NULL OR name = 'Ada' OR display_name = 'Ada L.')`, a.id))
	assert.Equal(b.t, 1, b.count(`SELECT count(*) FROM accounts.account_deletion_task_succeeded`))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM accounts.account_deletion_task_failed`))
}

// requireFilesStuck is what the checklist says of an account whose files cannot be deleted.
func (b *bundle) requireFilesStuck(a account) {
	b.t.Helper()
	assert.Equal(b.t, 3, b.count(`SELECT count(*) FROM files.file_deletion_task_failed JOIN files.file_deletion_attempt USING (file_deletion_attempt_id)
 JOIN files.file_deletion_task USING (file_deletion_task_id) WHERE file_id = $1`, a.files[0]))
	assert.Equal(b.t, "true", b.text(`SELECT files.is_file_deletion_stuck($1)::text`, a.files[0]))
	assert.Equal(b.t, fmt.Sprintf("The deletion of file %d is stuck.", a.files[0]),
		b.text(`SELECT error_message FROM accounts.account_deletion_task_failed`))
	assert.Equal(b.t, "deleted", b.flags(a.id), "what its files stand in the way of is not begun")
	assert.Zero(b.t, b.count(`SELECT count(*) FROM accounts.account_anonymization_task`))
	assert.Equal(b.t, "account_deletion_failed",
		b.call("accounts.account_deletion_supervisor", `{"account_deletion_task_id": 1}`), "it is not tried again")
	assert.True(b.t, b.ended())
}

// requireAnonymizationStuck is what the checklist says of an account that cannot be made anonymous.
func (b *bundle) requireAnonymizationStuck(a account) {
	b.t.Helper()
	assert.Equal(b.t, 3, b.count(`SELECT count(*) FROM accounts.account_anonymization_task_failed WHERE error_message = 'not today'`))
	assert.Equal(b.t, "true", b.text(`SELECT accounts.is_account_anonymization_stuck($1)::text`, a.id))
	assert.Equal(b.t, fmt.Sprintf("The anonymization of account %d is stuck.", a.id),
		b.text(`SELECT error_message FROM accounts.account_deletion_task_failed`))
	assert.Equal(b.t, "deleted", b.flags(a.id))
	assert.Equal(b.t, "Ada", b.text(`SELECT name FROM accounts.account`), "what an attempt did that failed is undone")
	assert.Equal(b.t, "account_deletion_failed",
		b.call("accounts.account_deletion_supervisor", `{"account_deletion_task_id": 1}`), "it is not tried again")
	assert.True(b.t, b.ended())
}

func TestAccountDeletion(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, other := b.account(2), b.account(1)
	var gone []string
	b.providers["file_delete"] = func(p map[string]any) (any, error) {
		gone = append(gone, fmt.Sprint(p["bucket"], " ", p["object_key"]))
		return nil, nil
	}
	require.Empty(t, b.deletion(a.id))
	assert.Equal(t, "deleted", b.flags(a.id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM accounts.account_deletion_task WHERE account_id = $1`, a.id))
	require.Empty(t, b.deletion(a.id), "again")
	b.work(b.ended)
	b.requireHappyPath(a)
	assert.ElementsMatch(t, []string{"recordings " + object(a.id, 0), "recordings " + object(a.id, 1)}, gone)
	assert.Empty(t, b.flags(other.id))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM accounts.account WHERE name = 'Ada'`))
}

func TestAccountWithoutFiles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.account(0)
	require.Empty(t, b.deletion(a.id))
	b.work(b.ended)
	b.requireHappyPath(a)
}

func TestFileDeletionStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.account(2)
	b.providers["file_delete"] = func(p map[string]any) (any, error) {
		if p["object_key"] == object(a.id, 0) {
			return nil, errors.New("no such bucket")
		}
		return nil, nil
	}
	require.Empty(t, b.deletion(a.id))
	b.work(b.ended)
	b.requireFilesStuck(a)
	assert.Equal(t, "false", b.text(`SELECT files.is_file_deletion_stuck($1)::text`, a.files[1]))
	assert.Equal(t, "no such bucket", b.text(`SELECT min(error_message) FROM files.file_deletion_task_failed`))
}

func TestAccountAnonymizationStuck(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.account(1)
	b.providers["file_delete"] = func(map[string]any) (any, error) { return nil, nil }
	b.breakAnonymization()
	require.Empty(t, b.deletion(a.id))
	b.work(b.ended)
	b.requireAnonymizationStuck(a)
}

// What cannot be asked for is told in words, and nothing is begun.
func TestDeletionOfNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Equal(t, "There is no account 5.", b.deletion(5))
	for function, message := range map[string]string{
		"files.kickoff_file_deletion":            "There is no file null.",
		"accounts.kickoff_account_anonymization": "There is no account null.",
		"accounts.kickoff_account_deletion":      "There is no account null.",
	} {
		assert.Equal(t, message, b.text(`SELECT `+function+`(NULL)`))
	}
	assert.Equal(t, "There is no upload intent 5.",
		b.text(`SELECT validation_failure_message FROM api.complete_recording_upload(5)`))
	assert.Zero(t, b.count(`SELECT count(*) FROM queues.task`))
}

// An upload that is completed after the account's deletion was asked for is refused: nothing would
// delete its file.
func TestUploadOfADeletedAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.account(1)
	const again = `SELECT coalesce(validation_failure_message, file_id::text) FROM api.complete_recording_upload(1)`
	assert.Equal(t, fmt.Sprint(a.files[0]), b.text(again), "completed before: the same file")
	require.Empty(t, b.deletion(a.id))
	assert.Equal(t, fmt.Sprintf("Account %d is deleted.", a.id), b.text(again))
}

package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// AirtableSync is the payload of the type airtable_sync: the answers of a form's submission, or of
// several, which are written to a table of Airtable. There is one record a submission, also when an
// attempt is repeated.
type AirtableSync struct {
	FormID       string `json:"formId,omitempty"`
	SubmissionID string `json:"submissionId,omitempty"`
	// Data are the answers: an object with a member for each field of the form.
	Data json.RawMessage `json:"data,omitempty"`
	// Schema describes the form's fields, and says which column of the table each answer goes to;
	// without, an answer goes to the column of its own name. It is a list of fields
	// ({"fields":[{"id":…,"label":…}]}), a JSON Schema ({"properties":{"id":{"title":…}}}), or an
	// object with a column for each field.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Records are several submissions, instead of SubmissionID and Data.
	Records []AirtableRecord `json:"records,omitempty"`
	// Settings say where to.
	Settings AirtableSettings `json:"airtableSettings"`
}

// AirtableRecord is one of several submissions.
type AirtableRecord struct {
	SubmissionID string          `json:"submissionId"`
	Data         json.RawMessage `json:"data"`
}

// AirtableSettings say to which table submissions are written, and by which token.
type AirtableSettings struct {
	// BaseID is the base, app…; TableName is the table's name or id. Both are required.
	BaseID    string `json:"base_id"`
	TableName string `json:"table_name"`
	// Secret names the token; default "default". See Secrets.
	Secret string `json:"secret,omitempty"`
	// KeyField is the column that has the submission's id, by which a record is found again; default
	// AirtableConfig.KeyField.
	KeyField string `json:"key_field,omitempty"`
	// FormField is the column that has the form's id; empty: none.
	FormField string `json:"form_field,omitempty"`
	// APIKey is refused: a payload holds no credentials. The error says where the token belongs.
	APIKey string `json:"api_key,omitempty"`
}

// JobType is "airtable_sync".
func (AirtableSync) JobType() string { return "airtable_sync" }

// AirtablePolicy is the type's policy: 3 attempts, 5 and 10 minutes between them, each of up to 30
// s.
func AirtablePolicy() jobs.Policy {
	return jobs.Policy{MaxAttempts: 3, Timeout: 30 * time.Second, Base: 5 * time.Minute, Factor: 2, Cap: 20 * time.Minute}
}

// AirtableConfig says where Airtable's API is and how it is asked. The zero value of each field
// means its default.
type AirtableConfig struct {
	// URL is where the API is; default https://api.airtable.com.
	URL string `env:"AIRTABLE_URL"`
	// KeyField is the column that has the submission's id, unless a payload names another; default
	// "Submission ID".
	KeyField string `env:"AIRTABLE_KEY_FIELD"`
	// Timeout bounds a request with its answer; default 20 s. It should be shorter than the policy's.
	Timeout time.Duration `env:"AIRTABLE_TIMEOUT"`
	// Secrets finds the tokens that payloads name.
	Secrets Secrets `env:"-"`
}

// AirtableHandler works jobs of the type airtable_sync. It is safe for concurrent use.
type AirtableHandler struct {
	config AirtableConfig
	upstream
	bases bases
}

// maxAirtableAnswer is how many bytes of an answer are read: it repeats the records.
const maxAirtableAnswer = 4 << 20

// NewAirtable returns a handler.
func NewAirtable(c AirtableConfig) (*AirtableHandler, error) {
	c.URL = strings.TrimRight(cmp.Or(c.URL, "https://api.airtable.com"), "/")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	c.KeyField = cmp.Or(c.KeyField, "Submission ID")
	switch {
	case !isSafe(c.URL):
		return nil, errors.New("airtable_sync: AIRTABLE_URL must be an address of https, or of this machine, without user and password")
	case c.Timeout < 0:
		return nil, errors.New("airtable_sync: AIRTABLE_TIMEOUT must not be negative")
	case hasControl(c.KeyField):
		return nil, errors.New("airtable_sync: AIRTABLE_KEY_FIELD must be the name of a column")
	}
	h := &AirtableHandler{config: c, upstream: newUpstream(c.Timeout)}
	h.limit = maxAirtableAnswer
	return h, nil
}

// Close gives idle connections back.
func (h *AirtableHandler) Close() error { return h.close() }

// Handle writes the submissions, ten a request. A record is found by the submission's id, so that a
// repeated attempt writes the same one. It fails with RATE_LIMITED (429: after 30 s, or a longer
// Retry-After), UPSTREAM_5XX, TIMEOUT or NETWORK_ERROR, which are tried again, and finally with
// AUTHENTICATION_FAILED (the token is refused, missing, or another organization's), NOT_FOUND (no
// such base or table), PAYLOAD_INVALID or HANDLER_ERROR (every other refusal, such as a column that
// the table does not have). When the base is busy, the job is put off without an attempt.
func (h *AirtableHandler) Handle(ctx context.Context, job *jobs.Job[AirtableSync]) error {
	return outcome(h.sync(ctx, callOf(job)))
}

// AirtableResult is the result of a job of the type airtable_sync.
type AirtableResult struct {
	// Records are the ids of the first hundred records; Created and Updated count all of them.
	Records []string `json:"records"`
	Created int      `json:"created"`
	Updated int      `json:"updated"`
	// Skipped are the answers that the form's schema does not have, and which were not written; the
	// first hundred.
	Skipped []string `json:"skipped,omitempty"`
}

// Limits of a payload.
const (
	maxAirtableRecords = 500
	// airtableBatch is how many records Airtable takes in one request.
	airtableBatch  = 10
	maxAirtableIDs = 100
)

// baseID is how Airtable names a base.
var baseID = regexp.MustCompile(`^[A-Za-z0-9]{3,64}$`)

// Check says what is wrong with the payload that its schema does not say. It is called when a job
// is enqueued.
func (p AirtableSync) Check() error {
	s := p.Settings
	switch {
	case !secretName.MatchString(s.secret()):
		return invalid("airtableSettings.secret is not the name of a secret: lower-case letters, digits, - and _")
	case s.APIKey != "":
		return invalid("airtableSettings.api_key: a payload holds no credentials. Store the token as the secret "+
			"DAYBOOK_AIRTABLE_TOKEN_%[1]s (or the file %[2]s.airtable "+
			"in DAYBOOK_SECRETS_DIR), bind it by DAYBOOK_SECRET_ORGS_%[1]s, and leave api_key out; airtableSettings.secret "+
			"names another secret than %[2]s",
			secretVariable(s.secret()), s.secret())
	case !baseID.MatchString(s.BaseID):
		return invalid("airtableSettings.base_id is not like app0123456789abcd")
	case strings.TrimSpace(s.TableName) == "" || hasControl(s.TableName) || s.TableName == "." || s.TableName == "..":
		return invalid("airtableSettings.table_name is not a table's name or id")
	case len(p.Records) > 0 && (p.SubmissionID != "" || len(p.Data) > 0):
		return invalid("records are given beside submissionId and data: give one of them")
	case len(p.Records) > maxAirtableRecords:
		return invalid("records has %d submissions and may have %d", len(p.Records), maxAirtableRecords)
	}
	_, _, err := p.rows("key")
	return err
}

// secret is the name of the token.
func (s AirtableSettings) secret() string { return cmp.Or(s.Secret, defaultSecret) }

// secretVariable is a secret's name as in the name of its variable.
func secretVariable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// rows are the columns of each record, and the answers that are left out.
func (p *AirtableSync) rows(key string) ([]map[string]any, []string, error) {
	columns, err := columnsOf(p.Schema)
	if err != nil {
		return nil, nil, err
	}
	records := p.Records
	if len(records) == 0 {
		records = []AirtableRecord{{SubmissionID: p.SubmissionID, Data: p.Data}}
	}
	rows, seen, left := make([]map[string]any, len(records)), map[string]bool{}, &skipped{}
	for i, r := range records {
		switch {
		case r.SubmissionID == "":
			return nil, nil, invalid("submissionId is missing: it is what a record is found by")
		case seen[r.SubmissionID]:
			return nil, nil, invalid("records: two submissions have the same submissionId")
		}
		seen[r.SubmissionID] = true
		if rows[i], err = columns.row(r.Data, left); err != nil {
			return nil, nil, err
		}
		if p.Settings.FormField != "" {
			rows[i][p.Settings.FormField] = p.FormID
		}
		rows[i][key] = r.SubmissionID
	}
	return rows, left.names, nil
}

// sync writes the submissions of a job.
func (h *AirtableHandler) sync(ctx context.Context, c *call[AirtableSync]) error {
	p := &c.payload
	if err := p.Check(); err != nil {
		return err
	}
	key := cmp.Or(p.Settings.KeyField, h.config.KeyField)
	rows, left, err := p.rows(key)
	if err != nil {
		return err
	}
	token, err := h.config.Secrets.named(c.orgID, "AIRTABLE_TOKEN_", p.Settings.secret(), ".airtable")
	if err != nil {
		return err
	}
	if !isVisible(token) {
		return fail(models.CodeAuthenticationFailed, "the secret %s is no token of Airtable, such as pat0123.abc…",
			p.Settings.secret())
	}
	done := AirtableResult{Records: []string{}, Skipped: left}
	for from := 0; from < len(rows); from += airtableBatch {
		batch := rows[from:min(from+airtableBatch, len(rows))]
		answer, err := h.upsert(ctx, &p.Settings, token, key, batch)
		if err != nil {
			return err
		}
		done.add(answer)
	}
	c.result(done)
	return nil
}

// add counts what one request wrote.
func (r *AirtableResult) add(a airtableAnswer) {
	r.Created += len(a.Created)
	r.Updated += len(a.Updated)
	for _, record := range a.Records {
		if len(r.Records) < maxAirtableIDs {
			r.Records = append(r.Records, record.ID)
		}
	}
}

func init() {
	builtins = append(builtins, builtin{name: "airtable_sync", register: func(r *jobs.Registry, s *environment) error {
		config, err := parse[AirtableConfig](s)
		if err != nil {
			return err
		}
		if config.URL == "" && !s.hasSecrets("AIRTABLE_TOKEN_", ".airtable") {
			return notConfiguredError(fmt.Sprintf("set %sAIRTABLE_TOKEN_DEFAULT, and %sSECRET_ORGS_DEFAULT to the "+
				"organizations that may use it", environmentPrefix, environmentPrefix))
		}
		config.Secrets = s.secrets
		h, err := NewAirtable(config)
		if err != nil {
			return err
		}
		s.onClose(h.Close)
		jobs.Register(r, s.policy(AirtablePolicy()), h.Handle)
		return nil
	}})
}

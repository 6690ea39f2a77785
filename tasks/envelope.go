package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// orders are the keys of a task's payload that the worker understands. All else is the handlers'
// own.
type orders struct {
	function, before, success, onError string
	// err says which key cannot be read.
	err error
}

// readOrders reads the keys of a task's payload. With an error the keys are read that can be.
func readOrders(payload json.RawMessage) orders {
	var o orders
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil {
		o.err = invalid("the task's payload is no JSON object")
		return o
	}
	for key, to := range map[string]*string{
		"db_function": &o.function, "before_handler": &o.before, "success_handler": &o.success, "error_handler": &o.onError,
	} {
		text, ok := textOf(fields[key])
		if !ok {
			o.err = invalid("the %s of the task's payload is no text: name a function as schema.name", key)
		}
		*to = text
	}
	return o
}

// textOf reads a text of JSON; what is not there, and null, is empty.
func textOf(raw json.RawMessage) (text string, ok bool) {
	if isNull(raw) {
		return "", true
	}
	return text, json.Unmarshal(raw, &text) == nil
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// answer is what a function of the database has answered.
type answer struct {
	// problem is why the answer is no success; empty: it is one.
	problem string
	// validation: the problem is a validation_failure_message, which is final.
	validation bool
	// outcome: the problem is a status alone, which is an outcome of the process and no error.
	outcome bool
	payload json.RawMessage
}

// readAnswer reads both envelopes: {"status", "payload"} and {"success", "error",
// "validation_failure_message", "payload"}. One that is neither is a problem: the function has run,
// and nothing says how it ended.
func readAnswer(raw json.RawMessage) answer {
	const want = `want {"status": "succeeded"} or {"success": true}`
	var fields map[string]json.RawMessage
	if isNull(raw) || json.Unmarshal(raw, &fields) != nil {
		return answer{problem: "it returned no JSON object: " + want}
	}
	status, statusRead := textOf(fields["status"])
	message, messageRead := textOf(fields["error"])
	validation, validationRead := textOf(fields["validation_failure_message"])
	var success *bool
	if raw := fields["success"]; !isNull(raw) && json.Unmarshal(raw, &success) != nil {
		return answer{problem: "it returned a success that is neither true nor false"}
	}
	if !statusRead || !messageRead || !validationRead {
		return answer{problem: "it returned a status, error or validation_failure_message that is no text"}
	}
	switch {
	case validation != "":
		return answer{problem: validation, validation: true}
	case message != "":
		return answer{problem: message}
	case success != nil && !*success:
		return answer{problem: "it returned success false, without an error"}
	case status != "" && status != "succeeded":
		return answer{problem: "status " + status, outcome: true}
	case status == "" && success == nil:
		return answer{problem: "it returned neither status nor success: " + want}
	}
	return answer{payload: fields["payload"]}
}

// failure is an answer that is no success, as it is recorded.
func (a answer) failure(function string) *failure {
	if a.validation {
		return invalid("%s: validation failed: %s", function, a.problem)
	}
	return &failure{code: models.CodeHandlerError, text: function + ": " + a.problem}
}

// successBody is what a success_handler is given.
type successBody struct {
	OriginalPayload json.RawMessage `json:"original_payload"`
	WorkerPayload   json.RawMessage `json:"worker_payload"`
}

// errorBody is what an error_handler is given.
type errorBody struct {
	OriginalPayload json.RawMessage `json:"original_payload"`
	Error           string          `json:"error"`
}

// body is a handler's argument as JSON. Texts of it are as the database can store them.
func body(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decode reads a provider's payload into p, and has p check it.
func decode(raw json.RawMessage, p any) error {
	if isNull(raw) {
		return invalid("the provider's payload is missing")
	}
	if err := json.Unmarshal(raw, p); err != nil {
		return invalid("the provider's payload cannot be read: %v", err)
	}
	if c, ok := p.(Checked); ok {
		if err := c.Check(); err != nil {
			return &failure{code: models.CodePayloadInvalid, text: plainText(err)}
		}
	}
	return nil
}

// failure is why a task failed.
type failure struct {
	code models.ErrorCode
	text string
	// stack is where the program panicked: for the task's record and the log, and not for the
	// process.
	stack string
}

func (f *failure) Error() string {
	if f.stack == "" {
		return f.text
	}
	return f.text + "\n" + f.stack
}

// ErrorCode is the code of the failure.
func (f *failure) ErrorCode() models.ErrorCode { return f.code }

// invalid is a failure of a payload.
func invalid(format string, args ...any) *failure {
	return &failure{code: models.CodePayloadInvalid, text: fmt.Sprintf(format, args...)}
}

// maxText is how many bytes of an error are kept.
const maxText = 4000

// storable is a text as the database can store it, also inside JSON, and not too long.
func storable(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "�")
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

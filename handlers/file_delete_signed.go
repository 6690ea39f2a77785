package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/daybook-dev/daybook/models"
)

// removeSigned asks the service for a signed address, and deletes the object by it.
func (h *FileDeleteHandler) removeSigned(ctx context.Context, p *FileDelete) (FileDeleteResult, error) {
	address, err := h.sign(ctx, p)
	if err != nil {
		return FileDeleteResult{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodDelete, address, nil)
	if err != nil {
		return FileDeleteResult{}, failFinally("the signed address cannot be used")
	}
	answer, err := h.ask(r)
	switch {
	case err != nil:
		return FileDeleteResult{}, err
	case answer.ok():
		return FileDeleteResult{Deleted: true}, nil
	case answer.status == http.StatusGone, answer.status == http.StatusNotFound &&
		!bytes.Contains(answer.body, []byte("NoSuchBucket")):
		return FileDeleteResult{}, nil
	}
	return FileDeleteResult{}, judge(r, answer, "")
}

// signRequest is what the service is asked, and signAnswer what it answers.
type (
	signRequest struct {
		Method string `json:"method"`
		FileDelete
	}
	signAnswer struct {
		URL string `json:"url"`
	}
)

// sign asks the service for an address that deletes an object.
func (h *FileDeleteHandler) sign(ctx context.Context, p *FileDelete) (string, error) {
	request, err := json.Marshal(signRequest{Method: http.MethodDelete, FileDelete: *p})
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.config.SignerURL, bytes.NewReader(request))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	token, err := h.config.Secrets.find(environmentPrefix+"FILES_SIGNER_TOKEN", "files.token")
	switch {
	case err == nil:
		r.Header.Set("Authorization", "Bearer "+token)
	case !errors.Is(err, errNoSecret):
		return "", err
	}
	answer, err := h.ask(r)
	if err != nil {
		return "", err
	}
	if !answer.ok() {
		return "", judge(r, answer, "")
	}
	var signed signAnswer
	if json.Unmarshal(answer.body, &signed) != nil || !isSafe(signed.URL) {
		return "", fail(models.CodeHandlerError, "%s answered without a signed address: want {\"url\": \"https://…\"}",
			origin(r.URL))
	}
	return signed.URL, nil
}

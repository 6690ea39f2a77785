package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"path"
	"strings"

	"github.com/wneessen/go-mail"
	"gocloud.dev/gcerrors"

	"github.com/daybook-dev/daybook/models"
)

// EmailAttachment is a file that is sent with a message: one of the bucket of reports, of the
// organization of the job. It is read when the message is sent.
type EmailAttachment struct {
	// File is the file's key in the bucket, which begins with the organization; ReportResult.Key is
	// one.
	File string `json:"file"`
	// Name is the file's name for the recipient; empty: the last part of File.
	Name string `json:"name,omitempty"`
	// Type is the MIME type; empty: by the end of the name.
	Type string `json:"type,omitempty"`
	// SHA256 is the file's hash in hexadecimal, without which nothing is sent but the file that was
	// meant; empty: any.
	SHA256 string `json:"sha256,omitempty"`
}

// maxAttachments is how many files a message may have.
const maxAttachments = 10

// checkAttachments refuses attachments that no attempt can send.
func checkAttachments(files []EmailAttachment) error {
	if len(files) > maxAttachments {
		return invalid("attachments has %d files, more than %d", len(files), maxAttachments)
	}
	for i := range files {
		a := &files[i]
		kind, _, err := mime.ParseMediaType(a.Type)
		switch {
		case a.File == "" || hasControl(a.File) || path.Clean("/"+a.File) != "/"+a.File:
			return invalid("attachments: file %d is not a key of the bucket of reports", i+1)
		case hasControl(a.Name) || strings.ContainsAny(a.Name, `/\`) || len(a.Name) > 200:
			return invalid("attachments: the name of file %d must be a name without a path, of 200 bytes at most", i+1)
		case a.Type != "" && (err != nil || kind == "" || hasControl(a.Type)):
			return invalid("attachments: the type of file %d is not a MIME type", i+1)
		}
	}
	return nil
}

// attach adds the payload's files to the message.
func (h *EmailHandler) attach(ctx context.Context, m *mail.Msg, org string, p *Email) error {
	if len(p.Attachments) == 0 {
		return nil
	}
	if err := checkAttachments(p.Attachments); err != nil {
		return err
	}
	if h.config.Reports == nil {
		return fail(models.CodeNotFound,
			"the worker that sends has no bucket of reports: set %sREPORTS_BUCKET there, and retry the job",
			environmentPrefix)
	}
	if err := allowedTo(h.config.ReportsTo, p.To, p.Cc); err != nil {
		return err
	}
	left := h.config.MaxAttached
	for i := range p.Attachments {
		a := &p.Attachments[i]
		if org == "" || !strings.HasPrefix(a.File, orgPrefix(org)) {
			return fail(models.CodeAuthenticationFailed,
				"attachments: file %d is not one of the organization's: its key must begin with %s", i+1, clip(orgPrefix(org)))
		}
		content, err := h.attachment(ctx, a, left)
		if err != nil {
			return err
		}
		left -= int64(len(content))
		name := a.Name
		if name == "" {
			name = path.Base(a.File)
		}
		var options []mail.FileOption
		if a.Type != "" {
			options = append(options, mail.WithFileContentType(mail.ContentType(a.Type)))
		}
		m.AttachReadSeeker(name, bytes.NewReader(content), options...)
	}
	return nil
}

// attachment reads a file of at most so many bytes.
func (h *EmailHandler) attachment(ctx context.Context, a *EmailAttachment, most int64) ([]byte, error) {
	facts, err := h.config.Reports.Attributes(ctx, a.File)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fail(models.CodeNotFound, "the attachment %s is not there", clip(a.File))
	}
	if err != nil {
		return nil, storageFailure(err)
	}
	if facts.Size > most {
		return nil, invalid("the attachments are larger than %d bytes together (%sSMTP_MAX_ATTACHED)", h.config.MaxAttached,
			environmentPrefix)
	}
	content, err := h.config.Reports.ReadAll(ctx, a.File)
	if err != nil {
		return nil, storageFailure(err)
	}
	sum := sha256.Sum256(content)
	if a.SHA256 != "" && !strings.EqualFold(a.SHA256, hex.EncodeToString(sum[:])) {
		return nil, failFinally("the attachment %s is another file than the one that was to be sent", clip(a.File))
	}
	return content, nil
}

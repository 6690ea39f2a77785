package main

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/require"
)

// servers are those that channels talk to: a mail server, a provider of text messages, and blob
// storage, by a directory and by signed addresses.
type servers struct {
	t *testing.T
	// directory is the bucket recordings.
	directory string
	smtp      *net.TCPAddr
	http      *httptest.Server

	mu sync.Mutex
	// busy is how many times mail server and provider refuse a message before they take one.
	busyMail, busyTexts int
	mails, texts        []string
	// objects are those behind signed addresses.
	objects []string
}

func serve(t *testing.T) *servers {
	t.Helper()
	s := &servers{t: t, directory: t.TempDir()}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.smtp = listener.Addr().(*net.TCPAddr)
	mail := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{servers: s},
			nil
	}))
	mail.Domain, mail.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = mail.Serve(listener)
	}()
	s.http = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() {
		_ = mail.Close()
		<-ended
		s.http.Close()
	})
	return s
}

// environment is how a worker is told of them.
func (s *servers) environment() map[string]string {
	return map[string]string{
		"DAYBOOK_SMTP_HOST": "127.0.0.1", "DAYBOOK_SMTP_PORT": strconv.Itoa(s.smtp.Port),
		"DAYBOOK_SMTP_FROM": "Shop <shop@example.com>", "DAYBOOK_SMTP_TLS": "none",
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC0123", "DAYBOOK_TWILIO_AUTH_TOKEN": "token", "DAYBOOK_TWILIO_URL": s.http.URL,
		"DAYBOOK_SMS_FROM":         "+12025550123",
		"DAYBOOK_FILES_BUCKETS":    "recordings=file://" + s.directory + "?no_tmp_dir=1&metadata=skip",
		"DAYBOOK_FILES_SIGNER_URL": s.http.URL + "/sign",
	}
}

// refuses counts down what is left to refuse.
func (s *servers) refuses(left *int) bool {
	if *left == 0 {
		return false
	}
	*left--
	return true
}

// answer is that of the provider of text messages, the service that signs addresses, and the
// storage behind them.
func (s *servers) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/Messages.json"):
		if s.refuses(&s.busyTexts) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.texts = append(s.texts, r.FormValue("To")+" "+r.FormValue("Body"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"sid": "SM1", "status": "queued"}`)
	case r.URL.Path == "/sign":
		var asked struct {
			Bucket    string `json:"bucket"`
			ObjectKey string `json:"object_key"`
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Bucket != "signed" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"url": s.http.URL + "/objects/" + asked.ObjectKey})
	case r.Method == http.MethodDelete:
		name := strings.TrimPrefix(r.URL.Path, "/objects/")
		s.objects = slices.DeleteFunc(s.objects, func(o string) bool { return o == name })
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// put writes a recording into the bucket recordings.
func (s *servers) put(object string) {
	s.t.Helper()
	path := filepath.Join(s.directory, filepath.FromSlash(object))
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(s.t, os.WriteFile(path, []byte("hello"), 0o600))
}

// has reports whether the bucket recordings has an object.
func (s *servers) has(object string) bool {
	_, err := os.Stat(filepath.Join(s.directory, filepath.FromSlash(object)))
	return err == nil
}

// mailSession is one connection to the mail server.
type mailSession struct {
	*servers
	to string
}

func (m *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (m *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	m.to = to
	return nil
}

func (m *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses(&m.busyMail) {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "later"}
	}
	m.mails = append(m.mails, m.to+"\n"+string(text))
	return nil
}

func (m *mailSession) Reset()        { m.to = "" }
func (m *mailSession) Logout() error { return nil }

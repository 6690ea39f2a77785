package handlers

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const smtpPassword = "hunter2-t0psecret"

// message is what a mail server took.
type message struct {
	from string
	to   []string
	data string
}

// mailServer is a real SMTP server that keeps what it takes. Each function may refuse a step.
type mailServer struct {
	host string
	port int
	tls  *tls.Config

	onMail func(from string) error
	onRcpt func(to string) error
	onData func() error
	// block, if it is there, holds up the answer to a message until it is closed.
	block chan struct{}

	mu   sync.Mutex
	took []message
}

func (s *mailServer) messages() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]message(nil), s.took...)
}

// session is one connection.
type session struct {
	server *mailServer
	message
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "shop" || password != smtpPassword {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.from = from
	if s.server.onMail != nil {
		return s.server.onMail(from)
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	if s.server.onRcpt != nil {
		return s.server.onRcpt(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.server.block != nil {
		<-s.server.block
	}
	if s.server.onData != nil {
		if err := s.server.onData(); err != nil {
			return err
		}
	}
	s.data = string(b)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.took = append(s.server.took, s.message)
	return nil
}

func (s *session) Reset()        { s.message = message{} }
func (s *session) Logout() error { return nil }

// serveMail starts a server for an encryption.
func serveMail(t *testing.T, encryption EmailTLS) *mailServer {
	t.Helper()
	// A certificate for 127.0.0.1, and who signed it.
	keys := httptest.NewTLSServer(nil)
	certificates := keys.TLS.Certificates
	roots := keys.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	keys.Close()

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().(*net.TCPAddr)
	m := &mailServer{
		host: "127.0.0.1", port: address.Port,
		tls: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: m}, nil }))
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	server.AllowInsecureAuth = encryption == EmailPlain
	if encryption != EmailPlain {
		server.TLSConfig = &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12}
	}
	if encryption == EmailImplicitTLS {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		if m.block != nil {
			close(m.block)
		}
		_ = server.Close()
		<-ended
	})
	return m
}

// mails registers the type email with a server.
func (b *bundle) mails(m *mailServer, change func(*EmailConfig)) *EmailHandler {
	b.t.Helper()
	c := EmailConfig{
		Host: m.host, Port: m.port, From: "Shop <shop@example.com>", Encryption: EmailPlain, TLS: m.tls,
		Hello:   "test.example.com",
		Secrets: environmentSecrets(map[string]string{"DAYBOOK_SMTP_PASSWORD": smtpPassword}), Timeout: 20 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	h, err := NewEmail(c)
	require.NoError(b.t, err)
	jobs.Register(b.registry, EmailPolicy(), h.Handle)
	return h
}

func letter() Email {
	return Email{To: []string{"Ada <ada@example.com>"}, Subject: "Größe 7", Text: "Hello Ada", HTML: "<p>Hello Ada</p>"}
}

func TestEmailIsSent(t *testing.T) {
	t.Parallel()
	for _, encryption := range []EmailTLS{EmailPlain, EmailSTARTTLS, EmailImplicitTLS} {
		t.Run(string(encryption), func(t *testing.T) {
			t.Parallel()
			m := serveMail(t, encryption)
			b := setup(t)
			b.mails(m, func(c *EmailConfig) { c.Encryption, c.Username = encryption, "shop" })
			p := letter()
			p.Cc, p.ReplyTo = []string{"bob@example.com"}, "desk@example.com"
			id := b.enqueueFor(org, p, queue.JobOptions{IdempotencyKey: "welcome-ada"})
			b.work()

			sent := result[EmailResult](t, b.job(id))
			assert.Equal(t, 2, sent.Recipients)
			require.Len(t, m.messages(), 1)
			got := m.messages()[0]
			assert.Equal(t, "shop@example.com", got.from)
			assert.Equal(t, []string{"ada@example.com", "bob@example.com"}, got.to)
			read, err := netmail.ReadMessage(strings.NewReader(got.data))
			require.NoError(t, err)
			assert.Equal(t, "<"+sent.MessageID+">", read.Header.Get("Message-Id"))
			assert.True(t, strings.HasSuffix(sent.MessageID, "@example.com"))
			assert.Equal(t, `"Shop" <shop@example.com>`, read.Header.Get("From"))
			assert.Equal(t, "<desk@example.com>", read.Header.Get("Reply-To"))
			assert.Equal(t, "auto-generated", read.Header.Get("Auto-Submitted"))
			assert.Contains(t, read.Header.Get("Content-Type"), "multipart/alternative")
			assert.Contains(t, got.data, "Hello Ada")
			assert.NotContains(t, b.everything(), smtpPassword)
		})
	}
}

func TestEmailMessageIDIsTheJobs(t *testing.T) {
	t.Parallel()
	h, err := NewEmail(EmailConfig{Host: "h", From: "a@example.com"})
	require.NoError(t, err)
	one, other := callFor(letter()), callFor(letter())
	other.id, other.attempt = "job_2", 2
	assert.Equal(t, h.messageID(one), h.messageID(other), "the same key")
	other.key = "key_2"
	assert.NotEqual(t, h.messageID(one), h.messageID(other))
	other.key, other.orgID = one.key, "org_2"
	assert.NotEqual(t, h.messageID(one), h.messageID(other))
}

func TestEmailAnswers(t *testing.T) {
	t.Parallel()
	reply := func(code int, enhanced smtp.EnhancedCode) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: "because " + smtpPassword}
	}
	for name, c := range map[string]struct {
		server func(*mailServer)
		state  models.JobState
		code   models.ErrorCode
	}{
		"greylisted": {func(m *mailServer) {
			m.onRcpt = func(string) error {
				return reply(451,
					smtp.EnhancedCode{4, 7, 1})
			}
		}, models.JobPending, models.CodeUpstream5xx},
		"mailbox busy": {func(m *mailServer) {
			m.onData = func() error {
				return reply(450,
					smtp.EnhancedCode{4, 2, 0})
			}
		}, models.JobPending, models.CodeUpstream5xx},
		"no recipient": {func(m *mailServer) {
			m.onRcpt = func(string) error {
				return reply(550,
					smtp.EnhancedCode{5, 1, 1})
			}
		}, models.JobFailed, models.CodeNotFound},
		"recipient policy": {func(m *mailServer) {
			m.onRcpt = func(string) error {
				return reply(550,
					smtp.EnhancedCode{5, 7, 1})
			}
		}, models.JobFailed, models.CodeHandlerError},
		"too large": {func(m *mailServer) {
			m.onData = func() error {
				return reply(552,
					smtp.EnhancedCode{5, 3, 4})
			}
		}, models.JobFailed, models.CodeHandlerError},
		"sender refused": {func(m *mailServer) {
			m.onMail = func(string) error {
				return reply(553,
					smtp.EnhancedCode{5, 1, 8})
			}
		}, models.JobFailed, models.CodeHandlerError},
		"login wanted": {func(m *mailServer) {
			m.onMail = func(string) error {
				return reply(530,
					smtp.EnhancedCode{5, 7, 0})
			}
		}, models.JobFailed, models.CodeAuthenticationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := serveMail(t, EmailPlain)
			c.server(m)
			b := setup(t)
			b.mails(m, func(c *EmailConfig) { c.Username = "shop" })
			j := b.run(letter())
			assert.Equal(t, c.state, j.State, j.Error)
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Empty(t, m.messages())
			assert.NotContains(t, b.everything(), smtpPassword, "also when the server repeats it")
			if c.state == models.JobPending {
				jittered(t, 5*time.Minute, j.Wait)
			}
		})
	}
}

func TestEmailRetriesByItsTable(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	m.onMail = func(string) error { return &smtp.SMTPError{Code: 421, Message: "later"} }
	b := setup(t)
	b.mails(m, nil)
	id := b.enqueue(letter())
	for _, wait := range []time.Duration{5 * time.Minute, 10 * time.Minute} {
		b.due()
		b.work()
		jittered(t, wait, b.job(id).Wait)
	}
	b.due()
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
}

func TestEmailLogins(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string]map[string]string{
		"wrong password": {"DAYBOOK_SMTP_PASSWORD": "wr0ng-t0psecret"},
		"no password":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := serveMail(t, EmailSTARTTLS)
			b := setup(t)
			b.mails(m, func(c *EmailConfig) {
				c.Encryption, c.Username, c.Secrets = EmailSTARTTLS, "shop", environmentSecrets(secrets)
			})
			j := b.run(letter())
			assert.Equal(t, models.JobFailed, j.State, j.Error)
			assert.Equal(t, models.CodeAuthenticationFailed, j.Code, j.Error)
			assert.NotContains(t, b.everything(), "t0psecret")
		})
	}
}

func TestEmailDoesNotDoWithoutEncryption(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	b := setup(t)
	b.mails(m, func(c *EmailConfig) { c.Encryption, c.Username = EmailSTARTTLS, "shop" })
	j := b.run(letter())
	assert.Equal(t, models.CodeNetworkError, j.Code, j.Error)
	assert.Empty(t, m.messages())
}

func TestEmailDoesNotTrustAnybody(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailSTARTTLS)
	b := setup(t)
	b.mails(m, func(c *EmailConfig) { c.Encryption, c.TLS = EmailSTARTTLS, nil })
	j := b.run(letter())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeNetworkError, j.Code, j.Error)
	assert.Empty(t, m.messages())
}

func TestEmailTimesOut(t *testing.T) {
	t.Parallel()
	m := serveMail(t, EmailPlain)
	m.block = make(chan struct{})
	b := setup(t)
	b.mails(m, func(c *EmailConfig) { c.Timeout = 100 * time.Millisecond })
	j := b.run(letter())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code, j.Error)
}

func TestEmailNetworkError(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	b := setup(t)
	b.mails(&mailServer{host: "127.0.0.1", port: port}, nil)
	j := b.run(letter())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeNetworkError, j.Code, j.Error)
}

func TestEmailRefusesPayloads(t *testing.T) {
	t.Parallel()
	h, err := NewEmail(EmailConfig{Host: "127.0.0.1", From: "a@example.com", MaxRecipients: 2})
	require.NoError(t, err)
	with := func(f func(*Email)) Email {
		p := letter()
		f(&p)
		return p
	}
	for name, p := range map[string]Email{
		"no recipient":         with(func(p *Email) { p.To = nil }),
		"too many":             with(func(p *Email) { p.Cc = []string{"b@example.com", "c@example.com"} }),
		"nothing to say":       with(func(p *Email) { p.Text, p.HTML = "", "" }),
		"subject injects":      with(func(p *Email) { p.Subject = "Hi\r\nBcc: eve@example.com" }),
		"subject line feed":    with(func(p *Email) { p.Subject = "Hi\nBcc: eve@example.com" }),
		"subject separator":    with(func(p *Email) { p.Subject = "Hi\u2028Bcc: eve@example.com" }),
		"to injects":           with(func(p *Email) { p.To = []string{"ada@example.com\r\nBcc: eve@example.com"} }),
		"to injects a command": with(func(p *Email) { p.To = []string{"\"ada\r\nDATA\"@example.com"} }),
		"two in one":           with(func(p *Email) { p.To = []string{"a@example.com, b@example.com"} }),
		"no address":           with(func(p *Email) { p.To = []string{"ada"} }),
		"cc":                   with(func(p *Email) { p.Cc = []string{""} }),
		"reply_to":             with(func(p *Email) { p.ReplyTo = "a@example.com\nX: y" }),
	} {
		err := h.deliver(t.Context(), callFor(p))
		var f *failure
		require.ErrorAs(t, err, &f, name)
		assert.Equal(t, models.CodePayloadInvalid, f.code, name)
	}
}

package handlers

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/textproto"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// errNotSent is what a span says of a message that the server did not take: the job's own error has
// the server's words, which may quote the message.
var errNotSent = errors.New("the server did not take the message")

// send sends a message to the server, within the configured time and until ctx ends.
func (h *EmailHandler) send(ctx context.Context, m *mail.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	password, err := h.password()
	if err != nil {
		return err
	}
	var opened net.Conn
	release := func() bool { return true }
	dial := func(dialing context.Context, network, address string) (net.Conn, error) {
		var dialer net.Dialer
		conn, err := dialer.DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		opened, release = conn, context.AfterFunc(ctx, func() { _ = conn.Close() })
		deadline, _ := ctx.Deadline()
		bounded := &boundedConn{Conn: conn, until: deadline}
		if h.config.Encryption != EmailImplicitTLS {
			return bounded, nil
		}
		secure := tls.Client(bounded, h.tls())
		return secure, secure.HandshakeContext(dialing)
	}
	client, err := h.client(dial, password)
	if err != nil {
		return fail(models.CodeHandlerError, "set up SMTP: %s", clip(err.Error()))
	}
	ctx, sending := span.Start(ctx,
		span.Span{Name: "send email", Kind: span.Client, Attrs: []span.Attr{{Key: "server.address", Value: h.config.Host}}})
	err = client.DialAndSendWithContext(ctx, m)
	if err == nil || m.IsDelivered() {
		sending.End(nil)
	} else {
		sending.End(errNotSent)
	}
	release()
	if opened != nil {
		_ = opened.Close() // the library leaves it open when the server refuses the greeting or the login
	}
	if err == nil || m.IsDelivered() {
		return nil // the server has taken it; how the conversation ended does not matter
	}
	return h.refused(ctx, err, password)
}

// password is the password of the login; empty without a user.
func (h *EmailHandler) password() (string, error) {
	if h.config.Username == "" {
		return "", nil
	}
	p, err := h.config.Secrets.find(environmentPrefix+"SMTP_PASSWORD", "smtp.password")
	if errors.Is(err, errNoSecret) {
		return "", fail(models.CodeAuthenticationFailed, "the password for SMTP: %w", err)
	}
	return p, err
}

func (h *EmailHandler) tls() *tls.Config {
	c := h.config.TLS.Clone()
	if c == nil {
		c = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ServerName == "" {
		c.ServerName = h.config.Host
	}
	return c
}

func (h *EmailHandler) client(dial mail.DialContextFunc, password string) (*mail.Client, error) {
	options := []mail.Option{
		mail.WithPort(h.config.Port), mail.WithTimeout(h.config.Timeout), mail.WithDialContextFunc(dial),
		mail.WithTLSConfig(h.tls()), mail.WithoutNoop(),
	}
	switch h.config.Encryption {
	case EmailImplicitTLS:
		options = append(options, mail.WithSSL())
	case EmailPlain:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	if h.config.Hello != "" {
		options = append(options, mail.WithHELO(h.config.Hello))
	}
	if h.config.Username != "" {
		options = append(options, mail.WithUsername(h.config.Username), mail.WithPassword(password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthPlain, mail.SMTPAuthLogin,
				mail.SMTPAuthCramMD5))
	}
	return mail.NewClient(h.config.Host, options...)
}

// boundedConn is a connection whose deadline is never later than an attempt's.
type boundedConn struct {
	net.Conn
	until time.Time
}

// SetDeadline sets t, or the attempt's own if that is earlier.
func (c *boundedConn) SetDeadline(t time.Time) error {
	if !c.until.IsZero() && (t.IsZero() || t.After(c.until)) {
		t = c.until
	}
	return c.Conn.SetDeadline(t)
}

// refused says what becomes of a job whose message was not sent.
func (h *EmailHandler) refused(ctx context.Context, err error, password string) *failure {
	text := err.Error()
	code, recipient, whole := 0, false, false
	var sending *mail.SendError
	var reply *textproto.Error
	switch {
	case errors.As(err, &sending):
		code, recipient = sending.ErrorCode(), sending.Reason == mail.ErrSMTPRcptTo
		whole = code == 0 && sending.Reason == mail.ErrSMTPDataClose // the message went out, and no answer came
		text, _, _ = strings.Cut(sending.Error(), ", affected ")
		if sending.EnhancedStatusCode() != "" && strings.HasPrefix(sending.EnhancedStatusCode(), "5.7.") {
			recipient = false // a policy of the server refused it, for any recipient
		}
	case errors.As(err, &reply):
		code = reply.Code
	}
	if password != "" {
		text = strings.ReplaceAll(text, password, "***")
	}
	f := h.refusedWith(ctx, err, clip(text), code, recipient)
	f.unsure = whole
	return f
}

// refusedWith is refused, by the code of the server's answer (0: there was none) and whether that
// was about a recipient.
func (h *EmailHandler) refusedWith(ctx context.Context, err error, text string, code int, recipient bool) *failure {
	deadline, _ := ctx.Deadline()
	switch {
	case code == 530, code == 534, code == 535, code == 538:
		return fail(models.CodeAuthenticationFailed, "SMTP: the server refused the login (%d)", code)
	case code >= 400 && code <= 499:
		return fail(models.CodeUpstream5xx, "SMTP: %s", text)
	case recipient && (code == 550 || code == 551 || code == 553):
		return fail(models.CodeNotFound, "SMTP: %s", text)
	case code >= 500:
		return failFinally("SMTP: %s", text)
	case isTimeout(err), errors.Is(ctx.Err(), context.DeadlineExceeded), !deadline.IsZero() &&
		!time.Now().Before(deadline):
		return fail(models.CodeTimeout, "SMTP: the server did not accept the message within %s", h.config.Timeout)
	default:
		return fail(models.CodeNetworkError, "SMTP: %s", text)
	}
}

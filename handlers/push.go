package handlers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/internal/telemetry/span"
)

// NotificationPush is a message to a browser, by Web Push, or to a phone, by Firebase Cloud
// Messaging.
type NotificationPush struct {
	Title string `json:"title"`
	Body  string `json:"body,omitempty"`
	// Subscription is a browser's, as it gives it; Token a phone's. One of them is required.
	Subscription *PushSubscription `json:"subscription,omitempty"`
	Token        string            `json:"token,omitempty"`
	// Secret names the VAPID key for a browser, the service account for a phone; default "default".
	// See Secrets.
	Secret string `json:"secret,omitempty"`
	// Data are the application's own texts.
	Data map[string]string `json:"data,omitempty"`
	// TTL is for how many seconds the message is kept for a device that is not reached; default 4
	// weeks, which is the longest.
	TTL int `json:"ttl,omitempty"`
}

// PushSubscription is what a browser's PushManager gives: an address for messages, and the keys
// that encrypt them.
type PushSubscription struct {
	Endpoint string `json:"endpoint"`
	// ExpirationTime is when it ends, in milliseconds; browsers give it, and it is not used.
	ExpirationTime *float64 `json:"expirationTime,omitempty"`
	Keys           PushKeys `json:"keys"`
}

// PushKeys are the keys of a subscription, in base64.
type PushKeys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// longestTTL is how long push services keep messages, in seconds.
const longestTTL = 28 * 24 * 3600

func (p *NotificationPush) check() error {
	switch {
	case !longest(p.Title, 200):
		return invalid("title is missing, or has more than 200 characters")
	case p.Secret != "" && !secretName.MatchString(p.Secret):
		return invalid("secret is the name of a secret, not a key: store it as DAYBOOK_VAPID_SECRET_<NAME> or DAYBOOK_FCM_SECRET_<NAME>")
	case p.TTL < 0 || p.TTL > longestTTL:
		return invalid("ttl must be from 0 to %d seconds", longestTTL)
	case (p.Subscription == nil) == (p.Token == ""):
		return invalid("give one of subscription, for a browser, and token, for a phone")
	case p.Token != "":
		if !isVisible(p.Token) || len(p.Token) > 4096 {
			return invalid("token is not the token of a device")
		}
		return nil
	}
	_, err := url.Parse(p.Subscription.Endpoint)
	if err != nil || !strings.HasPrefix(p.Subscription.Endpoint, "https://") || !isHTTP(p.Subscription.Endpoint) {
		return invalid("subscription.endpoint must be an address of https, without user and password")
	}
	if _, _, err := p.Subscription.Keys.read(); err != nil {
		return err
	}
	_, err = p.message()
	return err
}

// PushConfig says how push services are asked.
type PushConfig struct {
	// AllowNetworks are networks with push services for browsers although their addresses are not
	// public: 10.1.0.0/16.
	AllowNetworks []netip.Prefix `env:"PUSH_ALLOW_NETWORKS"`
	// FCMURL is where the API of Firebase Cloud Messaging is; default https://fcm.googleapis.com.
	FCMURL string `env:"FCM_URL"`
	// Timeout bounds a request with its answer; default 20 s.
	Timeout time.Duration `env:"PUSH_TIMEOUT"`
	// Secrets finds the keys and accounts that payloads name.
	Secrets Secrets `env:"-"`
	// TLS is the configuration of connections to push services for browsers; default Go's, with the
	// system's authorities.
	TLS *tls.Config `env:"-"`
}

// pusher sends messages to browsers and phones.
type pusher struct {
	config PushConfig
	// browsers leads to addresses that payloads name, and is guarded; phones to the one of the
	// configuration.
	browsers, phones upstream
	accounts         accounts
}

func newPusher(c PushConfig) (*pusher, error) {
	c.FCMURL = strings.TrimRight(cmp.Or(c.FCMURL, "https://fcm.googleapis.com"), "/")
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	switch {
	case !isSafe(c.FCMURL):
		return nil, errors.New("notification: FCM_URL must be an address of https, or of this machine, without user and password")
	case c.Timeout < 0:
		return nil, errors.New("notification: PUSH_TIMEOUT must not be negative")
	}
	h := &pusher{config: c, phones: newUpstream(c.Timeout), browsers: newUpstream(c.Timeout)}
	dialer := &net.Dialer{Control: guard{c.AllowNetworks}.control, Timeout: c.Timeout}
	h.browsers.client.Transport = &http.Transport{
		// No proxy: it would connect in place of the dialer that is guarded.
		DialContext: dialer.DialContext, TLSClientConfig: c.TLS, TLSHandshakeTimeout: c.Timeout, ForceAttemptHTTP2: true,
		MaxIdleConns: 100, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10,
	}
	h.accounts.client = h.phones.client
	h.accounts.timeout = c.Timeout
	return h, nil
}

func (h *pusher) close() error { return errors.Join(h.browsers.close(), h.phones.close()) }

// send sends a message to a browser or a phone.
func (h *pusher) send(ctx context.Context, c *call[Notification], p *NotificationPush) (string, error) {
	if p.Subscription == nil {
		return h.toPhone(ctx, c.orgID, p)
	}
	return h.toBrowser(ctx, c.orgID, p)
}

// push sends one request, within a span.
func push(r *http.Request, to upstream) (reply, error) {
	ctx, sending := span.Start(r.Context(),
		span.Span{
			Name: "send push", Kind: span.Client,
			Attrs: []span.Attr{{Key: "server.address", Value: r.URL.Hostname()}},
		})
	answer, err := to.ask(r.WithContext(ctx))
	if err != nil {
		sending.End(err)
		return answer, err
	}
	sending.Set(span.Attr{Key: "http.response.status_code", Value: answer.status})
	if answer.ok() {
		sending.End(nil)
	} else {
		sending.End(errNotSent)
	}
	return answer, nil
}

package handlers

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

var encode64 = base64.RawURLEncoding.EncodeToString

// The example of RFC 8291, section 5 and appendix A.
func TestPushEncryptsAsTheRFC(t *testing.T) {
	t.Parallel()
	raw := func(text string) []byte {
		b, err := base64Key(text)
		require.NoError(t, err)
		return b
	}
	own, err := ecdh.P256().NewPrivateKey(raw("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	require.NoError(t, err)
	body, err := encryptPush([]byte("When I grow up, I want to be a watermelon"), PushKeys{
		P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
		Auth:   "BTBZMqHH6r4Tts7J_aSIgg",
	}, own, raw("DGv6ra1nlYgDCS1FRnbzlw"))
	require.NoError(t, err)
	assert.Equal(t, "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"+
		"yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN", encode64(body))
}

// browser is a subscription, and the key that decrypts its messages.
type browser struct {
	key  *ecdh.PrivateKey
	auth []byte
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	require.NoError(t, err)
	b := &browser{key: key, auth: make([]byte, 16)}
	_, _ = rand.Read(b.auth)
	return b
}

func (b *browser) subscription(endpoint string) *PushSubscription {
	return &PushSubscription{
		Endpoint: endpoint,
		Keys:     PushKeys{P256dh: encode64(b.key.PublicKey().Bytes()), Auth: encode64(b.auth)},
	}
}

// read decrypts a message as a browser does.
func (b *browser) read(t *testing.T, body []byte) string {
	t.Helper()
	require.Greater(t, len(body), 86)
	salt, from := body[:16], body[21:86]
	sender, err := ecdh.P256().NewPublicKey(from)
	require.NoError(t, err)
	shared, err := b.key.ECDH(sender)
	require.NoError(t, err)
	derive := func(secret, salt []byte, info string, n int) []byte {
		key, err := hkdf.Key(sha256.New, secret, salt, info, n)
		require.NoError(t, err)
		return key
	}
	secret := derive(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(from), 32)
	block, err := aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16))
	require.NoError(t, err)
	open, err := cipher.NewGCM(block)
	require.NoError(t, err)
	text, err := open.Open(nil, derive(secret, salt, "Content-Encoding: nonce\x00", 12), body[86:], nil)
	require.NoError(t, err)
	return string(bytes.TrimSuffix(text, []byte{2}))
}

// vapidKey is a key as a secret has it, and its public half.
func vapidKey(t *testing.T) (string, *ecdsa.PublicKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	raw, err := key.Bytes()
	require.NoError(t, err)
	return "mailto:ops@example.com " + encode64(raw), &key.PublicKey
}

// pushes registers the type with a push service by https, whose address the worker may ask unless
// networks says otherwise.
func (b *bundle) pushes(t *testing.T, secret string, networks []netip.Prefix, f http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewTLSServer(r.keep(f))
	t.Cleanup(r.Close)
	h, err := NewNotification(b.Pool, NotificationConfig{Push: &PushConfig{
		AllowNetworks: networks, Timeout: 2 * time.Second, TLS: r.Client().Transport.(*http.Transport).TLSClientConfig,
		Secrets: secretsOf(map[string]string{"DAYBOOK_VAPID_SECRET_DEFAULT": secret, "DAYBOOK_SECRET_ORGS_DEFAULT": org}),
	}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, h.Close()) })
	jobs.Register(b.registry, NotificationPolicy(), h.Handle)
	return r
}

func toBrowser(b *browser, endpoint string) Notification {
	return Notification{EventType: "reminder", Push: &NotificationPush{
		Title: "Größe 7", Body: "Soon", Data: map[string]string{"link": "/x"}, TTL: 60,
		Subscription: b.subscription(endpoint),
	}}
}

func TestPushToABrowser(t *testing.T) {
	t.Parallel()
	b, who := setup(t), newBrowser(t)
	secret, public := vapidKey(t)
	r := b.pushes(t, secret, loopback, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	result[NotificationResult](t, b.run(toBrowser(who, r.URL+"/send/t0psecret")))
	require.Len(t, r.requests(), 1)
	got := r.requests()[0]
	assert.JSONEq(t, `{"title": "Größe 7", "body": "Soon", "data": {"link": "/x"}}`, who.read(t, got.body))
	assert.Equal(t, "POST /send/t0psecret aes128gcm 60",
		got.method+" "+got.path+" "+got.header.Get("Content-Encoding")+" "+got.header.Get("TTL"))

	token, key, ok := strings.Cut(strings.TrimPrefix(got.header.Get("Authorization"), "vapid t="), ", k=")
	require.True(t, ok)
	raw, err := public.Bytes()
	require.NoError(t, err)
	assert.Equal(t, encode64(raw), key)
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	signature, err := base64Key(parts[2])
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	assert.True(t, ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]),
		new(big.Int).SetBytes(signature[32:])))
	claims, err := base64Key(parts[1])
	require.NoError(t, err)
	assert.Contains(t, string(claims), `"aud":"`+r.URL+`"`)
	assert.Contains(t, string(claims), `"sub":"mailto:ops@example.com"`)
	assert.NotContains(t, b.everything(), "t0psecret")
}

func TestPushToABrowserFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status   int
		networks []netip.Prefix
		secret   string
		code     models.ErrorCode
		state    models.JobState
		text     string
	}{
		"gone":              {410, loopback, "", models.CodeNotFound, models.JobFailed, "answered 410"},
		"too many":          {429, loopback, "", models.CodeRateLimited, models.JobPending, "answered 429"},
		"out of order":      {500, loopback, "", models.CodeUpstream5xx, models.JobPending, "answered 500"},
		"key refused":       {403, loopback, "", models.CodeAuthenticationFailed, models.JobFailed, "answered 403"},
		"too large":         {413, loopback, "", models.CodeHandlerError, models.JobFailed, "answered 413"},
		"a private address": {201, nil, "", models.CodePayloadInvalid, models.JobFailed, "DAYBOOK_PUSH_ALLOW_NETWORKS can allow it"},
		"no key": {
			201, loopback, "mailto:ops@example.com", models.CodeAuthenticationFailed, models.JobFailed,
			"no VAPID key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, who := setup(t), newBrowser(t)
			secret, _ := vapidKey(t)
			if c.secret != "" {
				secret = c.secret
			}
			r := b.pushes(t, secret, c.networks, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(c.status) })
			j := b.run(toBrowser(who, r.URL+"/send/t0psecret"))
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Equal(t, c.state, j.State)
			assert.Contains(t, j.Error, c.text)
			assert.NotContains(t, b.everything(), "t0psecret")
		})
	}
	untrusted := newBrowser(t)
	b := setup(t)
	secret, _ := vapidKey(t)
	b.pushes(t, secret, loopback, nil)
	other := httptest.NewUnstartedServer(nil)
	other.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	other.Start() // it speaks no TLS
	t.Cleanup(other.Close)
	j := b.run(toBrowser(untrusted, strings.Replace(other.URL, "http:", "https:", 1)))
	assert.Equal(t, models.CodeNetworkError, j.Code, j.Error)
}

// account is a service account whose tokens a server gives.
func account(t *testing.T, tokens string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	secret, err := json.Marshal(serviceAccount{
		ProjectID: "shop-1", ClientEmail: "push@shop-1.example.com", PrivateKeyID: "k1", TokenURI: tokens,
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	})
	require.NoError(t, err)
	return string(secret)
}

func TestPushToAPhone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token, status int
		body          string
		code          models.ErrorCode
		text          string
	}{
		"sent": {200, 200, `{"name": "projects/shop-1/messages/7"}`, "", ""},
		"no such device": {
			200, 404,
			`{"error": {"code": 404, "message": "Requested entity d0 was not found.", "status": "NOT_FOUND"}}`,
			models.CodeNotFound, "entity *** was not found. (NOT_FOUND)",
		},
		"too many": {
			200, 429, `{"error": {"message": "Quota", "status": "RESOURCE_EXHAUSTED"}}`,
			models.CodeRateLimited, "Quota",
		},
		"out of order":          {200, 503, ``, models.CodeUpstream5xx, "answered 503"},
		"no token":              {401, 200, ``, models.CodeAuthenticationFailed, "refused a token"},
		"no token for a moment": {503, 200, ``, models.CodeUpstream5xx, "answered 503 when it was asked for a token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			tokens := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.token)
				_, _ = fmt.Fprint(w, `{"access_token": "t0psecret", "token_type": "Bearer", "expires_in": 3600}`)
			})
			phones := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			})
			b.variables(map[string]string{
				"DAYBOOK_FCM_URL": phones.URL, "DAYBOOK_FCM_SECRET_DEFAULT": account(t, tokens.URL),
				"DAYBOOK_SECRET_ORGS_DEFAULT": org,
			})
			p := Notification{
				EventType: "reminder",
				Push:      &NotificationPush{Title: "Soon", Token: "d0", TTL: 60, Data: map[string]string{"a": "b"}},
			}
			id := b.enqueue(p)
			b.work()
			j := b.job(id)
			if c.code != "" {
				assert.Equal(t, c.code, j.Code, j.Error)
				assert.Contains(t, j.Error, c.text)
				assert.NotContains(t, b.everything(), "t0psecret")
				return
			}
			assert.Equal(t, "projects/shop-1/messages/7", result[NotificationResult](t, j).Channels["push"].Reference)
			b.run(p)
			assert.Len(t, tokens.requests(), 1, "a token serves until it ends")
			require.Len(t, phones.requests(), 2)
			got := phones.requests()[0]
			assert.Equal(t, "/v1/projects/shop-1/messages:send Bearer t0psecret",
				got.path+" "+got.header.Get("Authorization"))
			assert.JSONEq(t, `{"message": {"token": "d0", "notification": {"title": "Soon", "body": ""}, "data": {"a": "b"}, "android": {"ttl": "60s"}}}`, string(got.body))
		})
	}
}

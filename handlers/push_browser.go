package handlers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// Web Push: RFC 8030, encrypted by RFC 8291 and RFC 8188, signed by RFC 8292 (VAPID).
const (
	// pushRecord is the size of the one record of a message.
	pushRecord = 4096
	// maxPush is what is left of it for the message: without the header of 86 bytes, the tag, and the
	// mark of the last record.
	maxPush = pushRecord - 86 - 16 - 1
	// vapidLife is for how long a signature is valid; a day is the longest.
	vapidLife = 12 * time.Hour
)

// base64Key reads base64 of either alphabet, with padding or without.
func base64Key(text string) ([]byte, error) {
	text = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(text, "="))
	return base64.RawURLEncoding.DecodeString(text)
}

// read returns the browser's public key and its authentication secret.
func (k PushKeys) read() (*ecdh.PublicKey, []byte, error) {
	raw, err := base64Key(k.P256dh)
	if err != nil {
		return nil, nil, invalid("subscription.keys.p256dh is not base64")
	}
	public, err := ecdh.P256().NewPublicKey(raw)
	if err != nil {
		return nil, nil, invalid("subscription.keys.p256dh is not a public key of P-256")
	}
	auth, err := base64Key(k.Auth)
	if err != nil || len(auth) != 16 {
		return nil, nil, invalid("subscription.keys.auth is not base64 of 16 bytes")
	}
	return public, auth, nil
}

// message is what the browser's service worker gets.
func (p *NotificationPush) message() ([]byte, error) {
	message, err := json.Marshal(struct {
		Title string            `json:"title"`
		Body  string            `json:"body,omitempty"`
		Data  map[string]string `json:"data,omitempty"`
	}{p.Title, p.Body, p.Data})
	if err != nil {
		return nil, invalid("the message cannot be written as JSON")
	}
	if len(message) > maxPush {
		return nil, invalid("title, body and data have %d bytes as JSON, and a message may have %d", len(message), maxPush)
	}
	return message, nil
}

// toBrowser sends a message to a browser's push service.
func (h *pusher) toBrowser(ctx context.Context, org string, p *NotificationPush) (string, error) {
	secret, err := vapidSecret.of(h.config.Secrets, org, p.Secret)
	if err != nil {
		return "", err
	}
	endpoint, err := url.Parse(p.Subscription.Endpoint)
	if err != nil {
		return "", invalid("subscription.endpoint cannot be read")
	}
	signature, err := vapid(secret, origin(endpoint), time.Now())
	if err != nil {
		return "", err
	}
	message, err := p.message()
	if err != nil {
		return "", err
	}
	body, err := encryptPush(message, p.Subscription.Keys, nil, nil)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), bytes.NewReader(body))
	if err != nil {
		return "", invalid("subscription.endpoint cannot be asked")
	}
	r.Header.Set("Content-Encoding", "aes128gcm")
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("TTL", strconv.Itoa(cmp.Or(p.TTL, longestTTL)))
	r.Header.Set("Authorization", signature)
	answer, err := push(r, h.browsers)
	if errors.Is(err, errAddress) {
		return "", invalid("%s: %w; %sPUSH_ALLOW_NETWORKS can allow it", origin(endpoint), errAddress, environmentPrefix)
	}
	if err != nil {
		return "", err
	}
	if !answer.ok() {
		return "", judge(r, answer, "")
	}
	return "", nil
}

// encryptPush encrypts a message for a browser, in one record. own and salt are nil but in tests:
// each message has its own.
func encryptPush(message []byte, keys PushKeys, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	public, auth, err := keys.read()
	if err != nil {
		return nil, err
	}
	if own == nil {
		if own, err = ecdh.P256().GenerateKey(rand.Reader); err != nil {
			return nil, err
		}
		salt = make([]byte, 16)
		_, _ = rand.Read(salt) // it never fails
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, invalid("subscription.keys.p256dh is not a key to encrypt with")
	}
	sender := own.PublicKey().Bytes()
	info := "WebPush: info\x00" + string(public.Bytes()) + string(sender)
	secret, err := hkdf.Key(sha256.New, shared, auth, info, 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := append([]byte(nil), salt...)
	out = binary.BigEndian.AppendUint32(out, pushRecord)
	out = append(out, byte(len(sender)))
	out = append(out, sender...)
	return seal.Seal(out, nonce, append(bytes.Clone(message), 2), nil), nil // 2 ends the last record
}

// vapid is the header Authorization for a push service. The secret is a contact, a blank, and the
// private key in base64.
func vapid(secret, audience string, now time.Time) (string, error) {
	wrong := fail(models.CodeAuthenticationFailed, "the secret is no VAPID key: it must be a contact, "+
		"mailto:ops@example.com or https://…, a blank, and the private key in base64")
	contact, text, ok := strings.Cut(secret, " ")
	if !ok || !strings.HasPrefix(contact, "mailto:") && !strings.HasPrefix(contact, "https://") {
		return "", wrong
	}
	raw, err := base64Key(strings.TrimSpace(text))
	if err != nil {
		return "", wrong
	}
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return "", wrong
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return "", wrong
	}
	claims, err := json.Marshal(map[string]any{"aud": audience, "exp": now.Add(vapidLife).Unix(), "sub": contact})
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(token))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return "vapid t=" + token + "." + encode(signature) + ", k=" + encode(public), nil
}

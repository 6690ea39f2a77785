package encryption

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/failure"
)

// Member is the member of a JSON object under which its encrypted members are kept.
const Member = "$encrypted"

// AllMembers, as the only element of a list of members, stands for all that there are.
const AllMembers = "*"

// ErrReserved: an object that is to be encrypted has a member of Daybook's own name.
var ErrReserved = failure.New(failure.PayloadInvalid, "the member "+Member+" is Daybook's own: give it another name")

// ErrNotAuthentic: an encrypted value was altered, or belongs to another organization, job type or
// use than the one that asks for it.
var ErrNotAuthentic = failure.New(failure.Invalid, "the encrypted value is not authentic: it was altered, or belongs "+
	"to another organization, job type or use")

// Use is what an encrypted value is for.
type Use string

// The uses of a job's values.
const (
	Payload  Use = "payload"
	Result   Use = "result"
	Progress Use = "progress"
	Step     Use = "step"
	ErrorOf  Use = "error"
)

// Of says which value is encrypted. It cannot be decrypted as another one.
type Of struct {
	// OrgID is the job's organization, JobType the type that it was enqueued with.
	OrgID, JobType string
	Use            Use
}

// additional is what authenticates a value besides its key. No part contains a zero byte.
func (o Of) additional() []byte {
	return []byte(strings.Join([]string{"daybook 1", string(o.Use), o.OrgID, o.JobType}, "\x00"))
}

// sealed is an encrypted value as it is stored.
type sealed struct {
	// Key names the key that has wrapped the data key.
	Key     string `json:"key"`
	Wrapped []byte `json:"wrapped"`
	// Data is a nonce of 12 bytes, the encrypted value and a tag of 16.
	Data []byte `json:"data"`
}

const (
	// dataKeyAge is for how long a data key is used, and remembered.
	dataKeyAge = 10 * time.Minute
	// dataKeyUses bounds how many values share a data key: their nonces are random.
	dataKeyUses = 1 << 24
	// dataKeysKept bounds how many data keys are remembered.
	dataKeysKept = 10_000
)

// Cipher encrypts and decrypts. It is safe for concurrent use. Make one with New or FromFile.
type Cipher struct {
	keys Keys

	mu      sync.Mutex
	current dataKey
	uses    int
	known   map[string]dataKey
}

// dataKey is a data key in use.
type dataKey struct {
	aead    cipher.AEAD
	keyID   string
	wrapped []byte
	since   time.Time
}

func (d dataKey) fresh() bool { return d.aead != nil && time.Since(d.since) < dataKeyAge }

// New returns a cipher whose data keys are wrapped by keys.
func New(keys Keys) *Cipher { return &Cipher{keys: keys, known: map[string]dataKey{}} }

// EncryptMembers returns a JSON object with the named members, or AllMembers, encrypted under Member.
// Members that the object lacks are passed over; with none to encrypt it is returned as it is.
// Errors: ErrReserved, and those of Keys.
func (c *Cipher) EncryptMembers(ctx context.Context, of Of, object json.RawMessage, members []string) (
	json.RawMessage, error,
) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	if all[Member] != nil {
		return nil, ErrReserved
	}
	hidden := map[string]json.RawMessage{}
	for name, value := range all {
		if within(members, name) {
			hidden[name] = value
			delete(all, name)
		}
	}
	if len(hidden) == 0 {
		return object, nil
	}
	plain, err := json.Marshal(hidden)
	if err != nil {
		return nil, err
	}
	if all[Member], err = c.seal(ctx, of, plain); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// Encrypt returns a JSON object that holds value, any JSON, encrypted.
func (c *Cipher) Encrypt(ctx context.Context, of Of, value json.RawMessage) (json.RawMessage, error) {
	inner, err := c.seal(ctx, of, value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]json.RawMessage{Member: inner})
}

// Decrypt returns a value as it was before EncryptMembers or Encrypt. What is not encrypted is
// returned as it is. Errors: ErrKeyUnknown, ErrNotAuthentic, and those of Keys.
func (c *Cipher) Decrypt(ctx context.Context, of Of, value json.RawMessage) (json.RawMessage, error) {
	all, inner := split(value)
	if inner == nil {
		return value, nil
	}
	plain, err := c.open(ctx, of, inner)
	if err != nil || len(all) == 0 {
		return plain, err
	}
	var hidden map[string]json.RawMessage
	if err := json.Unmarshal(plain, &hidden); err != nil {
		return nil, err
	}
	for name := range hidden {
		if all[name] != nil {
			return nil, fmt.Errorf("%w: %s is there in plain as well", ErrNotAuthentic, name)
		}
	}
	maps.Copy(all, hidden)
	return json.Marshal(all)
}

// KeyOf names the key of an encrypted value; empty: it is not encrypted.
func KeyOf(value json.RawMessage) string {
	if !bytes.Contains(value, []byte(`"`+Member+`"`)) {
		return ""
	}
	_, inner := split(value)
	var s sealed
	if inner == nil || json.Unmarshal(inner, &s) != nil {
		return ""
	}
	return s.Key
}

// Encrypts reports whether the members, as a payload names them, are all encrypted in an object.
func Encrypts(object json.RawMessage, members []string) bool {
	all, _ := split(object)
	for name := range all {
		if within(members, name) {
			return false
		}
	}
	return true
}

// within reports whether the members name one.
func within(members []string, name string) bool {
	for _, m := range members {
		if m == name || m == AllMembers {
			return true
		}
	}
	return false
}

// split returns an object's plain members, and what is under Member: nil for a value that is not
// encrypted, whose members are nil too when it is no object.
func split(value json.RawMessage) (plain map[string]json.RawMessage, inner json.RawMessage) {
	if value = bytes.TrimSpace(value); len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &plain) != nil {
		return nil, nil
	}
	inner = plain[Member]
	delete(plain, Member)
	return plain, inner
}

// seal encrypts plain under the current data key.
func (c *Cipher) seal(ctx context.Context, of Of, plain []byte) (json.RawMessage, error) {
	key, err := c.currentKey(ctx)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // this cipher makes its nonces itself, and takes none
	data := key.aead.Seal(nil, nil, plain, of.additional())
	return json.Marshal(sealed{Key: key.keyID, Wrapped: key.wrapped, Data: data})
}

func (c *Cipher) open(ctx context.Context, of Of, inner json.RawMessage) ([]byte, error) {
	var s sealed
	if err := json.Unmarshal(inner, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAuthentic, err)
	}
	key, err := c.knownKey(ctx, s.Key, s.Wrapped)
	if err != nil {
		return nil, err
	}
	plain, err := key.aead.Open(nil, nil, s.Data, of.additional())
	if err != nil {
		return nil, ErrNotAuthentic
	}
	return plain, nil
}

// currentKey is the data key for new values.
func (c *Cipher) currentKey(ctx context.Context) (dataKey, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current.fresh() && c.uses < dataKeyUses {
		c.uses++
		return c.current, nil
	}
	raw := make([]byte, DataKeyBytes)
	_, _ = rand.Read(raw) // it never fails
	id, wrapped, err := c.keys.Wrap(ctx, raw)
	if err != nil {
		return dataKey{}, fmt.Errorf("wrap a data key: %w", err)
	}
	aead, err := aeadOf(raw)
	if err != nil {
		return dataKey{}, err
	}
	c.current, c.uses = dataKey{aead: aead, keyID: id, wrapped: wrapped, since: time.Now()}, 1
	return c.current, nil
}

// knownKey is the data key that was wrapped so.
func (c *Cipher) knownKey(ctx context.Context, keyID string, wrapped []byte) (dataKey, error) {
	name := keyID + "\x00" + string(wrapped)
	c.mu.Lock()
	key := c.known[name]
	c.mu.Unlock()
	if key.fresh() {
		return key, nil
	}
	raw, err := c.keys.Unwrap(ctx, keyID, wrapped)
	if err != nil {
		return dataKey{}, fmt.Errorf("unwrap a data key: %w", err)
	}
	if key.aead, err = aeadOf(raw); err != nil {
		return dataKey{}, err
	}
	key.since = time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= dataKeysKept {
		clear(c.known)
	}
	c.known[name] = key
	return key, nil
}

// aeadOf makes the cipher of a data key. Its nonces are random.
func aeadOf(raw []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, raw, nil, "daybook values", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

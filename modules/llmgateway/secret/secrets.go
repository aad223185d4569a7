// Package secret hides what leaves the gateway by the secret that its nodes share: what
// clients carry between calls, and what the nodes remember in common.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/weirhq/weir/storage/shared"
)

// Secrets are what the gateway makes of the secret of its nodes.
type Secrets struct {
	Memory

	sealing cipher.AEAD // of what clients carry
}

// New makes the secrets. A reload of the configuration may change the memory.
func New(secret []byte, memory func() shared.Memory) (*Secrets, error) {
	sealing, err := newAEAD(secret, "weir encrypted_content")
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Key(sha256.New, secret, nil, "weir memory keys", sha256.Size)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(secret, "weir memory values")
	return &Secrets{Memory{memory, mac, aead}, sealing}, err
}

// newAEAD makes a cipher for one purpose (AES-256-GCM).
func newAEAD(secret []byte, purpose string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Sealed begins each sealed text.
const Sealed = "weir1."

// Seal encrypts a text that clients carry and can neither read nor change. Only who names
// the same provider opens the text.
func (s *Secrets) Seal(provider, content string) string {
	return Sealed + base64.RawURLEncoding.EncodeToString(s.sealing.Seal(nil, nil, []byte(content), []byte(provider)))
}

// Open is the reverse of Seal. It is false for a text that was sealed for another provider,
// with another secret, or not at all.
func (s *Secrets) Open(provider, text string) (content string, ok bool) {
	text, ok = strings.CutPrefix(text, Sealed)
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	plain, err := s.sealing.Open(nil, nil, raw, []byte(provider))
	return string(plain), err == nil
}

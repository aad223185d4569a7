package llmgateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// sealer encrypts what clients carry between calls without being able to read
// or change it (AES-256-GCM). What was sealed for one provider opens for it
// alone.
type sealer struct{ aead cipher.AEAD }

// sealed begins what a sealer made.
const sealed = "weir1."

func newSealer(secret []byte) (*sealer, error) {
	aead, err := newAEAD(secret, "weir encrypted_content")
	return &sealer{aead}, err
}

// newAEAD makes a cipher for one purpose of the secret that nodes share.
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

// unreadableSecret is what the log says.
const unreadableSecret = "the secret of the gateway cannot be read"

func (s *sealer) seal(provider, content string) string {
	return sealed + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, []byte(content), []byte(provider)))
}

func (s *sealer) open(provider, text string) (content string, ok bool) {
	text, ok = strings.CutPrefix(text, sealed)
	if !ok {
		return "", false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	plain, err := s.aead.Open(nil, nil, raw, []byte(provider))
	return string(plain), err == nil
}

func (a *attempt) seal(content string) string {
	return a.sealer.seal(a.target.Account.Provider, content)
}

func (a *attempt) unseal(text string) (content string, ok bool) {
	return a.sealer.open(a.target.Account.Provider, text)
}

package journal

import (
	"crypto/aes"
	"crypto/cipher"
)

// The filter of an erasure that is done stays in the journal's file for a while, in case a node joins that has
// calls which it chooses. It names persons: whoever has this file lacks the key, and whoever has the key, which
// is in the backend alone, lacks this file.

const filterKeyBytes = 32 // AES-256

// encryptFilter encrypts the filter of an erasure.
func encryptFilter(key []byte, e *Erasure) ([]byte, error) {
	c, err := filterCipher(key)
	if err != nil {
		return nil, err
	}
	return c.Seal(nil, nil, e.Filter, e.ID[:]), nil
}

// decryptFilter is the inverse of encryptFilter.
func decryptFilter(key []byte, e *Erasure) ([]byte, error) {
	c, err := filterCipher(key)
	if err != nil {
		return nil, err
	}
	return c.Open(nil, nil, e.EncryptedFilter, e.ID[:])
}

func filterCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

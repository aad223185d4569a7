package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"
)

// MaxPublished bounds a published catalogue, in bytes: the built-in one has a million.
const MaxPublished = 32 << 20

// installedName is the file of a folder that has the installed catalogue: its signature, then its
// text. One file cannot be replaced by half.
const installedName = "catalog.signed"

// CheckKey is an error unless key is the public key of minisign: the second line of its .pub file.
func CheckKey(key string) error {
	if err := new(minisign.PublicKey).UnmarshalText([]byte(key)); err != nil {
		return errors.New("want a public key of minisign, which is the second line of its .pub file and begins with RW")
	}
	return nil
}

// Newest returns the newer one of the built-in catalogue and the one that Install wrote to a folder,
// if there is one. If key did not sign that one, or it cannot be read, the result is the built-in one
// with an error that says so.
func Newest(dir, key string) (*Catalog, error) {
	path := filepath.Join(dir, installedName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return Default(), err
	}
	end := 0
	for range 4 { // lines of a signature
		end += bytes.IndexByte(text[end:], '\n') + 1
	}
	c, err := readPublished(text[end:], text[:end], key)
	if err != nil {
		return Default(), fmt.Errorf("%s %w; `weir catalog update` replaces the file", path, err)
	}
	if c.Date().After(Default().Date()) {
		return c, nil
	}
	return Default(), nil
}

// Install writes a published catalogue to a folder, from where Newest reads it. text is a complete
// catalogue of the schema of the built-in data, signature its .minisig file. It is an error if key
// did not sign it, or if the catalogue in force is newer; the same version is not written again. A
// file that Newest cannot use is replaced.
func Install(dir, key string, text, signature []byte) (*Catalog, error) {
	c, err := readPublished(text, signature, key)
	if err != nil {
		return nil, fmt.Errorf("the catalogue %w", err)
	}
	if c.Date().After(time.Now().AddDate(0, 0, 1)) {
		return nil, fmt.Errorf("the catalogue is of %s, which is in the future: no later one would be taken; check the clock", c.version)
	}
	newest, unusable := Newest(dir, key)
	switch age := newest.Date().Compare(c.Date()); {
	case age > 0:
		return nil, fmt.Errorf("the catalogue is of %s, and older than the one of %s that is installed: get a newer one", c.version, newest.version)
	case age == 0 && unusable == nil:
		return newest, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, installedName)
	signature = append(bytes.TrimRight(signature, "\r\n"), '\n')
	fresh := path + ".new" // a crash leaves the whole old file or the whole new one
	if err := os.WriteFile(fresh, append(signature, text...), 0o600); err != nil {
		return nil, err
	}
	return c, os.Rename(fresh, path)
}

// readPublished reads a complete catalogue. Errors begin with a verb: the caller names the file.
func readPublished(text, signature []byte, key string) (*Catalog, error) {
	var public minisign.PublicKey
	if err := public.UnmarshalText([]byte(key)); err != nil {
		return nil, fmt.Errorf("cannot be verified: %w", CheckKey(key))
	}
	if !minisign.Verify(public, text, signature) {
		return nil, fmt.Errorf("is not signed by the key %s: get it and its signature again from who publishes it, or correct `catalog_key`", strings.TrimSpace(key))
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if c.Date().Format(time.DateOnly) != c.version {
		return nil, fmt.Errorf(`has the version %q: want its day, as in "version": "2026-11-12"`, c.version)
	}
	if len(c.order) == 0 {
		return nil, errors.New("has no providers: it must be complete")
	}
	return c, nil
}

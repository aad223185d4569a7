package clientconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Change is a change of one file.
type Change struct {
	File   string
	Before []byte // what the file has; empty if it does not exist
	After  []byte
	// Delete is set if there is to be no file, because there was none before the set-up, or because
	// the user has deleted it since.
	Delete bool
	// Kept are settings that an undo leaves, because the user has changed them since the set-up.
	Kept []string
	// Edited is set if an undo leaves what the user has changed since the set-up.
	Edited bool

	mode   fs.FileMode
	record *record
}

// record is what an undo needs. It is kept in a file of the user's configuration folder.
type record struct {
	File     string
	Existed  bool
	Mode     fs.FileMode // of the file before
	Before   []byte      // the file before
	After    string      // SHA-256 of the file after
	Settings []changed
	Folders  []string // folders that were created, the innermost first
}

// changed is a setting as it was and is.
type changed struct {
	Path   []string
	Before *string // nil if the file did not have it
	After  string
}

// ErrNoRecord is the error for an undo of what was not set up.
var ErrNoRecord = errors.New("weir setup has not changed this file")

// Setup returns the change that makes the client call the gateway. If the file is set up already,
// the new settings replace those.
func (c *Client) Setup(project string, g Gateway) (*Change, error) {
	change, err := c.read(project)
	if err != nil {
		return nil, err
	}
	if change.record == nil {
		change.record = &record{File: change.File, Existed: change.Before != nil, Mode: change.mode, Before: change.Before}
	} else {
		undone, err := c.undone(change)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(undone, change.record.Before) {
			change.record.Before, change.record.Existed = undone, change.Before != nil
		}
		change.record.Settings = nil
	}
	text := change.record.Before
	for _, s := range c.settings(g) {
		if text, err = c.set(text, s, change.record); err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
	}
	for _, s := range change.record.Settings { // also checks the syntax of the whole text
		at, ok, err := c.format.find(text, s.Path)
		if err == nil && (!ok || !same(string(text[at.start:at.end]), s.After)) {
			err = fmt.Errorf("%s cannot be set in it", strings.Join(s.Path, "."))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
	}
	change.After = text
	change.record.After = digest(text)
	return change, nil
}

// set gives a setting its value, and notes its earlier one in r.
func (c *Client) set(text []byte, s setting, r *record) ([]byte, error) {
	at, found, err := c.format.find(text, s.path)
	if err != nil {
		return nil, err
	}
	if !found {
		r.Settings = append(r.Settings, changed{Path: s.path, After: s.text})
		return c.format.insert(text, s.path, s.text)
	}
	before := string(text[at.start:at.end])
	r.Settings = append(r.Settings, changed{Path: s.path, Before: &before, After: s.text})
	value := indent(s.text, indentation(text, at.start))
	if strings.HasSuffix(s.text, "\n") {
		value += "\n"
	}
	return splice(text, at, value), nil
}

// Undo returns the change that undoes the set-up. If the file is as the set-up left it, it becomes
// what it was, byte for byte. Otherwise only the settings of the set-up are taken back.
func (c *Client) Undo(project string) (*Change, error) {
	change, err := c.read(project)
	if err != nil {
		return nil, err
	}
	if change.record == nil {
		return nil, fmt.Errorf("%s: %w", change.File, ErrNoRecord)
	}
	change.Edited = digest(change.Before) != change.record.After
	if change.After, err = c.undone(change); err != nil {
		return nil, err
	}
	change.Delete = change.Before == nil || !change.record.Existed && (!change.Edited || len(change.After) == 0)
	return change, nil
}

// undone returns the text of a file without the set-up.
func (c *Client) undone(change *Change) ([]byte, error) {
	r := change.record
	if digest(change.Before) == r.After {
		return r.Before, nil
	}
	text := change.Before
	for _, s := range slices.Backward(r.Settings) {
		at, found, err := c.format.find(text, s.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
		switch {
		case !found:
		case !same(string(text[at.start:at.end]), s.After):
			change.Kept = append(change.Kept, strings.Join(s.Path, "."))
		case s.Before != nil:
			text = splice(text, at, *s.Before)
		default:
			if text, err = c.format.remove(text, s.Path); err != nil {
				return nil, fmt.Errorf("%s: %w", change.File, err)
			}
		}
	}
	return text, nil
}

// same tells whether texts differ in white space at the ends of lines alone.
func same(a, b string) bool {
	trim := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		return strings.Join(lines, "\n")
	}
	return trim(a) == trim(b)
}

// read returns a change without its After: the file, and the record of an earlier set-up.
func (c *Client) read(project string) (*Change, error) {
	file, err := c.File(project)
	if err != nil {
		return nil, err
	}
	change := &Change{File: file, mode: 0o600}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		change.mode = info.Mode().Perm()
		if change.Before, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	at, err := recordFile(file)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return change, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &change.record); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return change, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// recordFile returns where the record of a file is kept.
func recordFile(file string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "weir", "setup", digest([]byte(file))[:16]+".json"), nil
}

// Write writes the change of a set-up, after the record of what the file was. The file has a key:
// nobody else may read it.
func (c *Change) Write() error {
	at, err := recordFile(c.File)
	if err != nil {
		return err
	}
	var folders []string
	for dir := filepath.Dir(c.File); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		folders = append(folders, dir)
	}
	if len(folders) > 0 {
		c.record.Folders = folders
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(c.record)
	if err != nil {
		return err
	}
	if err := replace(at, text, 0o600); err != nil {
		return err
	}
	return replace(c.File, c.After, c.mode&0o700)
}

// Revert writes the change of an undo, and forgets the set-up.
func (c *Change) Revert() error {
	if c.Delete {
		if err := os.Remove(c.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range c.record.Folders {
			_ = os.Remove(dir) // one that is not empty stays
		}
	} else if err := replace(c.File, c.After, c.record.Mode); err != nil {
		return err
	}
	at, err := recordFile(c.File)
	if err != nil {
		return err
	}
	return os.Remove(at)
}

// replace writes a file as a whole: a reader finds the old text or the new one.
func replace(file string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".weir-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which fails if all went well
	if _, err = f.Write(text); err == nil {
		err = f.Chmod(mode)
	}
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

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

	"github.com/weirhq/weir/internal/disk"
)

// Change is a change of one file.
type Change struct {
	File   string
	Before []byte // what the file has; empty if it does not exist
	After  []byte
	// Delete is set if there is to be no file, because there was none before the set-up, or because
	// the user has deleted it since.
	Delete bool
	Edits  []Edit
	// Kept are settings that an undo leaves, because the user has changed them since the set-up.
	Kept []string
	// Edited is set if an undo leaves what the user has changed since the set-up.
	Edited bool

	mode   fs.FileMode // the file's, or that of a new one
	record *record
}

// Edit is what a change does to one setting. Its texts are as in the file.
type Edit struct {
	Setting string
	// Before and After are nil if the file has, or will have, no such setting.
	Before, After *string
}

// record is what an undo needs of a set-up. It is stored in a file of the user's configuration folder.
type record struct {
	File     string
	Existed  bool
	Mode     fs.FileMode // of the file before
	Before   []byte      // the file before
	After    string      // SHA-256 of the file after
	Settings []settingChange
	Folders  []string // folders that were created, the innermost first
	// Earlier is the record of the set-up that this one replaces. It holds until the file has been
	// written, and is nil from then on.
	Earlier *record `json:",omitempty"`
}

// settingChange is a setting before and after a set-up.
type settingChange struct {
	Path   []string
	Before *string // nil if the file did not have it
	After  string
}

func (s *settingChange) name() string { return strings.Join(s.Path, ".") }

// ErrNoRecord is the error for an undo of what was not set up.
var ErrNoRecord = errors.New("weir setup has not changed this file")

// ErrFileChanged is the error for a file that has changed since it was read.
var ErrFileChanged = errors.New("the file has changed meanwhile: nothing is written; run the command again")

// Setup returns the change that makes the client call the gateway. If the file is set up already,
// the new settings replace those.
func (c *Client) Setup(project string, g Gateway) (*Change, error) {
	change, err := c.read(project)
	if err != nil {
		return nil, err
	}
	next := &record{File: change.File, Existed: change.Before != nil, Mode: change.mode, Before: change.Before}
	if earlier := change.record; earlier != nil {
		if next.Before, err = c.undone(change); err != nil {
			return nil, err
		}
		if slices.Equal(next.Before, earlier.Before) {
			next.Existed = earlier.Existed
		}
		next.Mode, next.Folders, next.Earlier = earlier.Mode, earlier.Folders, earlier
	}
	change.record, change.Edits, change.Kept = next, nil, nil
	text := next.Before
	for _, s := range c.settings(g) {
		if text, err = c.set(text, s, next); err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
	}
	for _, s := range next.Settings {
		change.Edits = append(change.Edits, Edit{Setting: s.name(), Before: s.Before, After: &s.After})
	}
	for _, s := range next.Settings { // also checks the syntax of the whole text
		at, ok, err := c.format.find(text, s.Path)
		if err == nil && (!ok || !same(string(text[at.start:at.end]), s.After)) {
			err = fmt.Errorf("%s cannot be set in it", s.name())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
	}
	if c.noComments && !json.Valid(text) {
		return nil, fmt.Errorf("%s: %s ignores a file with comments, or with commas at the end of lists: take them out", change.File, c.Title)
	}
	for _, path := range c.rivals {
		if _, ok, _ := c.format.find(text, path); ok && g.TokenCommand != nil {
			return nil, fmt.Errorf("%s: %s wins over your login: remove it", change.File, strings.Join(path, "."))
		}
	}
	change.After = text
	next.After = digest(text)
	return change, nil
}

// set gives a setting its value, and notes its earlier one in r.
func (c *Client) set(text []byte, s setting, r *record) ([]byte, error) {
	at, found, err := c.format.find(text, s.path)
	if err != nil {
		return nil, err
	}
	if !found {
		r.Settings = append(r.Settings, settingChange{Path: s.path, After: s.text})
		return c.format.insert(text, s.path, s.text)
	}
	before := string(text[at.start:at.end])
	r.Settings = append(r.Settings, settingChange{Path: s.path, Before: &before, After: s.text})
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

// undone returns the text of a file without the set-up, and notes what that changes.
func (c *Client) undone(change *Change) ([]byte, error) {
	r := change.record
	if digest(change.Before) == r.After {
		for _, s := range r.Settings {
			change.Edits = append(change.Edits, Edit{Setting: s.name(), Before: &s.After, After: s.Before})
		}
		return r.Before, nil
	}
	text := change.Before
	for _, s := range slices.Backward(r.Settings) {
		at, found, err := c.format.find(text, s.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
		value := string(text[at.start:at.end])
		if !found || s.Before != nil && same(value, *s.Before) {
			continue
		}
		if !same(value, s.After) {
			change.Kept = append(change.Kept, s.name())
			continue
		}
		if s.Before != nil {
			text = splice(text, at, *s.Before)
		} else if text, err = c.format.remove(text, s.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", change.File, err)
		}
		if _, _, err := c.format.find(text, s.Path); err != nil { // checks the syntax of the whole text
			return nil, fmt.Errorf("%s: %s cannot be taken out of it: remove it by hand: %w", change.File, s.name(), err)
		}
		change.Edits = append(change.Edits, Edit{Setting: s.name(), Before: &s.After, After: s.Before})
	}
	return text, nil
}

// same reports whether texts differ in blank lines and in white space at the ends of lines alone.
func same(a, b string) bool {
	trim := func(s string) (lines []string) {
		for line := range strings.SplitSeq(s, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}
	return slices.Equal(trim(a), trim(b))
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
	if r := change.record; r.Earlier != nil && digest(change.Before) != r.After { // the later set-up has not written the file
		change.record = r.Earlier
	}
	return change, nil
}

// check returns ErrFileChanged if the file has changed since it was read for this change.
func (c *Change) check() error {
	text, err := os.ReadFile(c.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if (err == nil) != (c.Before != nil) || !slices.Equal(text, c.Before) {
		return fmt.Errorf("%s: %w", c.File, ErrFileChanged)
	}
	return nil
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
	if err := c.check(); err != nil {
		return err
	}
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
	if err := c.record.write(at); err != nil {
		return err
	}
	if err := disk.Replace(c.File, c.After, c.mode&0o700); err != nil || c.record.Earlier == nil {
		return err
	}
	c.record.Earlier = nil
	return c.record.write(at)
}

func (r *record) write(file string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Replace(file, text, 0o600)
}

// Revert writes the change of an undo, and forgets the set-up. A file that the user has edited
// stays as closed as it is: it may have the key still.
func (c *Change) Revert() error {
	if err := c.check(); err != nil {
		return err
	}
	mode := c.record.Mode
	if c.Edited {
		mode = c.mode
	}
	if c.Delete {
		if err := os.Remove(c.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, dir := range c.record.Folders {
			_ = os.Remove(dir) // one that is not empty stays
		}
	} else if err := disk.Replace(c.File, c.After, mode); err != nil {
		return err
	}
	at, err := recordFile(c.File)
	if err != nil {
		return err
	}
	return os.Remove(at)
}

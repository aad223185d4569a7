package remote

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

const (
	noteName   = ".note"
	openedName = ".opened"
	erasedName = "%s.%06d.erased" // of the journal, with the number
)

// Notes implements storage.Peers.
func (b *Backend) Notes(context.Context) (map[uuid.UUID]storage.Note, error) {
	if _, err := b.dir.up(); err != nil {
		return nil, err
	}
	notes := make(map[uuid.UUID]storage.Note)
	opened, err := fs.Glob(os.DirFS(string(b.dir)), "*"+openedName)
	for _, name := range opened {
		notes[uuid.MustParse(name[:len(name)-len(openedName)])] = storage.Note{}
	}
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(os.DirFS(string(b.dir)), "*"+noteName)
	for _, name := range files {
		text, err := os.ReadFile(b.dir.file(name))
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(b.dir.file(name))
		if err != nil {
			return nil, err
		}
		notes[uuid.MustParse(name[:len(name)-len(noteName)])] = storage.Note{Text: string(text), Age: time.Since(info.ModTime())}
	}
	return notes, err
}

// ForgetNotes loses all notes and lists, as if somebody had emptied their table.
func (b *Backend) ForgetNotes() error {
	for _, pattern := range []string{"*" + noteName, "*.erased"} {
		files, err := fs.Glob(os.DirFS(string(b.dir)), pattern)
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := os.Remove(b.dir.file(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// LeaveNote implements storage.Peers.
func (b *Backend) LeaveNote(_ context.Context, journal uuid.UUID, text string) error {
	return b.replace(journal.String()+noteName, []byte(text))
}

// AddErased implements storage.Peers.
func (b *Backend) AddErased(_ context.Context, journal uuid.UUID, number int64, entry []byte) error {
	return b.replace(fmt.Sprintf(erasedName, journal, number), entry)
}

// replace writes a file as a whole.
func (b *Backend) replace(name string, text []byte) error {
	if _, err := b.dir.up(); err != nil {
		return err
	}
	path := b.dir.file(name)
	if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// ErasedBy implements storage.Peers.
func (b *Backend) ErasedBy(_ context.Context, journal uuid.UUID, after int64) (entries [][]byte, err error) {
	if _, err := b.dir.up(); err != nil {
		return nil, err
	}
	for {
		text, err := os.ReadFile(filepath.Join(string(b.dir), fmt.Sprintf(erasedName, journal, after+1)))
		if os.IsNotExist(err) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entries, after = append(entries, text), after+1
	}
}

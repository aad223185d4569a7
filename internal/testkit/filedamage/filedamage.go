// Package filedamage damages a file of a store as disks and operators do.
package filedamage

import (
	"errors"
	"math/rand/v2"
	"os"
)

// Kind is a way in which a file is damaged. Do takes its text, which is not empty, and old, the file as it
// was before, nil if it was not there.
type Kind struct {
	Name string
	Do   func(rng *rand.Rand, path string, text, old []byte) error
}

// Kinds are the ways in which the text of a file changes or is gone.
var Kinds = []Kind{
	{"gone", func(_ *rand.Rand, path string, _, _ []byte) error { return os.Remove(path) }},
	{"empty", func(_ *rand.Rand, path string, _, _ []byte) error { return os.Truncate(path, 0) }},
	{"cut", func(rng *rand.Rand, path string, text, _ []byte) error {
		return os.Truncate(path, rng.Int64N(int64(len(text))))
	}},
	{"old", func(_ *rand.Rand, path string, _, old []byte) error {
		if old == nil {
			return os.Remove(path)
		}
		return os.WriteFile(path, old, 0o600)
	}},
	{"flipped", func(rng *rand.Rand, path string, text, _ []byte) error {
		at := rng.IntN(len(text))
		return overwrite(path, at, []byte{text[at] ^ 1<<rng.IntN(8)})
	}},
	{"zeroed", func(rng *rand.Rand, path string, text, _ []byte) error {
		from := rng.IntN(len(text)) &^ (4<<10 - 1)
		return overwrite(path, from, make([]byte, min(4<<10, len(text)-from)))
	}},
}

// Replacements are the ways in which something else gets the name of a file.
var Replacements = []Kind{
	{"a directory", func(_ *rand.Rand, path string, _, _ []byte) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	}},
	{"a link to nothing", func(_ *rand.Rand, path string, _, _ []byte) error {
		return errors.Join(os.Remove(path), os.Symlink(path+".moved", path))
	}},
}

// overwrite writes bytes into a file. The rest of the file is left alone: its process may write it.
func overwrite(path string, at int, bytes []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(bytes, int64(at))
	return errors.Join(err, f.Close())
}

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
	stateName  = ".state"
	openedName = ".opened"
	erasedName = "%s.%06d.erased" // of the node, with the number
)

// Nodes implements storage.Nodes.
func (b *Backend) Nodes(context.Context) (map[uuid.UUID]storage.Node, error) {
	if _, err := b.dir.up(); err != nil {
		return nil, err
	}
	nodes := make(map[uuid.UUID]storage.Node)
	opened, err := fs.Glob(os.DirFS(string(b.dir)), "*"+openedName)
	for _, name := range opened {
		nodes[uuid.MustParse(name[:len(name)-len(openedName)])] = storage.Node{}
	}
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(os.DirFS(string(b.dir)), "*"+stateName)
	for _, name := range files {
		state, err := os.ReadFile(b.dir.file(name))
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(b.dir.file(name))
		if err != nil {
			return nil, err
		}
		nodes[uuid.MustParse(name[:len(name)-len(stateName)])] = storage.Node{State: string(state), Age: time.Since(info.ModTime())}
	}
	return nodes, err
}

// ForgetNodes loses all states, and what nodes have erased, as if somebody had emptied their table.
func (b *Backend) ForgetNodes() error {
	for _, pattern := range []string{"*" + stateName, "*.erased"} {
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

// ForgetErased loses one part of what a node has erased.
func (b *Backend) ForgetErased(node uuid.UUID, number int64) error {
	return os.Remove(b.dir.file(fmt.Sprintf(erasedName, node, number)))
}

// SaveNode implements storage.Nodes.
func (b *Backend) SaveNode(_ context.Context, node uuid.UUID, state string) error {
	return b.replace(node.String()+stateName, []byte(state))
}

// AddErased implements storage.Nodes.
func (b *Backend) AddErased(_ context.Context, node uuid.UUID, number int64, part []byte) error {
	return b.replace(fmt.Sprintf(erasedName, node, number), part)
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

// ErasedBy implements storage.Nodes.
func (b *Backend) ErasedBy(_ context.Context, node uuid.UUID, after int64) (parts [][]byte, err error) {
	if _, err := b.dir.up(); err != nil {
		return nil, err
	}
	for {
		part, err := os.ReadFile(filepath.Join(string(b.dir), fmt.Sprintf(erasedName, node, after+1)))
		if os.IsNotExist(err) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		parts, after = append(parts, part), after+1
	}
}

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

func TestContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Backend {
		return New(filepath.Join(t.TempDir(), "weir.db"))
	})
}

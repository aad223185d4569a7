package llmquery_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/storage"
)

// A read of a database that somebody has locked is answered long before its deadline,
// and says that the store is at fault, not the query.
func TestLockedDatabase(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{Org: "default"}, nil)
	index, err := os.OpenFile(filepath.Join(s.dir, "weir.db-shm"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	lock := func(kind int16) {
		t.Helper()
		// The locks of a write-ahead log (https://sqlite.org/walformat.html), once the store has none.
		if err := unix.FcntlFlock(index.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: kind, Start: 120, Len: 8}); err != nil {
			t.Fatal(err)
		}
	}
	lock(unix.F_WRLCK)
	defer lock(unix.F_UNLCK)
	response, answer := s.do("GET", "/v1/request/"+id.String(), "root", "")
	if message := answer.Get("error").String(); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(message, "the store cannot be reached") {
		t.Errorf("%d %s, want 503", response.StatusCode, message)
	}
}

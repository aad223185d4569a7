package llmadmin

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage/backup"
)

var backups sync.Mutex

// makeBackup backs up the stores of the running configuration. The process that has the
// stores open makes the backup, because this process alone can hold still what is written,
// for the moment that the backup has.
//
// There is one backup at a time. The next backup removes what a broken-off backup has left.
func makeBackup(w http.ResponseWriter, r *http.Request) error {
	var to struct {
		Directory string `json:"directory"`
	}
	app, err := readJSON(w, r, &to)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(to.Directory) {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("directory: want an absolute path on this machine, not %q", to.Directory)}
	}
	if !backups.TryLock() {
		return caddy.APIError{HTTPStatus: http.StatusConflict, Err: errors.New("a backup is being made; wait for its end")}
	}
	defer backups.Unlock()
	var stores []backup.Store
	for _, name := range slices.Sorted(maps.Keys(app.Stores)) {
		store, err := app.Store(name)
		if err != nil {
			return err
		}
		defer store.Hold()()
		j, err := store.Journal()
		if err == nil {
			err = j.Connected(r.Context())
		}
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: %w", name, err)}
		}
		s := backup.Store{Name: name, Dir: store.Dir(), Journal: j}
		if s.Control, err = store.ControlFile(); err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: its control objects: %w", name, err)}
		}
		stores = append(stores, s)
	}
	summary, err := backup.Write(r.Context(), to.Directory, stores)
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusInternalServerError, Err: fmt.Errorf("there is no new backup: %w", err)}
	}
	return apierror.WriteJSON(w, http.StatusOK, summary)
}

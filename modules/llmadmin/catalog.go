package llmadmin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins/catalog"
)

// InstalledCatalog is the answer of /llm/catalog.
type InstalledCatalog struct {
	// Version is that of the installed catalogue, Running that of the one in force, without an
	// operator's file. If they differ, the configuration must be loaded again.
	Version string `json:"version"`
	Running string `json:"running"`
}

// downloadTimeout bounds a download of a published catalogue, which has some megabytes.
const downloadTimeout = time.Minute

var installs sync.Mutex

// installCatalog gets a published catalogue and its signature, which is at the same place with
// `.minisig` at its end, and installs it if the configured key has signed it.
func installCatalog(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		From string `json:"from"`
	}
	app, err := readJSON(w, r, &request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), downloadTimeout)
	defer cancel()
	text, err := getPublished(ctx, request.From)
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("the catalogue: %w", err)}
	}
	signature, err := getPublished(ctx, request.From+".minisig")
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("the signature of the catalogue, which must be beside it: %w", err)}
	}
	installs.Lock()
	defer installs.Unlock()
	installed, err := app.Prices().Install(text, signature)
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	return apierror.WriteJSON(w, http.StatusOK, InstalledCatalog{installed.Version(), app.Catalog().Date().Format(time.DateOnly)})
}

// getPublished reads a file of this machine, by its absolute path, or of an address.
func getPublished(ctx context.Context, from string) ([]byte, error) {
	var source io.ReadCloser
	switch {
	case strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://"):
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
		if err != nil {
			return nil, err
		}
		response, err := http.DefaultClient.Do(request) //nolint:forbidigo // no provider is called
		if err != nil {
			return nil, err
		}
		source = response.Body
		if response.StatusCode != http.StatusOK {
			source.Close()
			return nil, fmt.Errorf("%s answers %s", from, response.Status)
		}
	case filepath.IsAbs(from):
		file, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		source = file
	default:
		return nil, fmt.Errorf("from: want an address or an absolute path on this machine, not %q", from)
	}
	defer source.Close()
	text, err := io.ReadAll(io.LimitReader(source, catalog.MaxPublished+1)) //nolint:forbidigo // no client or provider sends it
	if err == nil && len(text) > catalog.MaxPublished {
		err = fmt.Errorf("%s has more than %d MB", from, catalog.MaxPublished>>20)
	}
	return text, err
}

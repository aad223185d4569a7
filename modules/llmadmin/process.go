package llmadmin

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/llmapp"
)

// Process is the answer of /llm/process: which Weir has the admin endpoint.
type Process struct {
	ID      int    `json:"process"`
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Sites are the addresses at which it listens, sorted; none while it starts.
	Sites []string `json:"sites"`
	// Stores are where its open stores keep their records.
	Stores []string `json:"stores"`
}

// String is a line for people.
func (p *Process) String() string {
	return fmt.Sprintf("Weir %s, process %d, serves %s, keeps records in %s", p.Version, p.ID, list(p.Sites), list(p.Stores))
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing yet"
	}
	return strings.Join(names, ", ")
}

func process(w http.ResponseWriter, _ *http.Request) error {
	p := Process{ID: os.Getpid(), Version: llmapp.Version(), Commit: llmapp.Commit(), Sites: []string{}, Stores: []string{}}
	if app, err := caddy.ActiveContext().AppIfConfigured("http"); err == nil {
		for _, server := range app.(*caddyhttp.App).Servers {
			p.Sites = append(p.Sites, server.Listen...)
		}
		slices.Sort(p.Sites)
	}
	for _, store := range llmapp.OpenStores() {
		p.Stores = append(p.Stores, store.Place())
	}
	return apierror.WriteJSON(w, http.StatusOK, p)
}

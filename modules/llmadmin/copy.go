package llmadmin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/transfer"
)

// copyRequest is the body of a POST to /llm/stores/copy. Stores are named as in the
// configuration. From Since to Until is a range of the records' times.
type copyRequest struct {
	From   string            `json:"from"`
	To     string            `json:"to"`
	Since  storage.Timestamp `json:"since"`
	Until  storage.Timestamp `json:"until"` // not included; 0 is now
	Verify bool              `json:"verify"`
}

// CopyEvent is a line of the answer of /llm/stores/copy: the last has a summary, or an error.
type CopyEvent struct {
	Progress *transfer.Progress `json:"progress,omitempty"`
	Summary  *transfer.Summary  `json:"summary,omitempty"`
	Error    string             `json:"error,omitempty"`
}

// reportEvery is how often an answer tells how far a copy is.
const reportEvery = time.Second

// copying has an element while a store is copied.
var copying = make(chan struct{}, 1)

// copyStore copies a store to another one of the running configuration. The
// process that has both stores open makes the copy, as long as the client stays. There is
// one copy at a time; the next copy waits for its end.
func copyStore(w http.ResponseWriter, r *http.Request) error {
	now := storage.Millis(time.Now())
	var request copyRequest
	app, err := readJSON(w, r, &request)
	if err != nil {
		return err
	}
	if request.From == "" || request.To == "" || request.From == request.To {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("from %q, to %q: want the names of two stores", request.From, request.To)}
	}
	window := storage.Always
	if request.Since != 0 {
		window.From = request.Since
	}
	if window.To = now; request.Until != 0 {
		window.To = request.Until - 1
	}
	options := transfer.Options{Window: window, Verify: request.Verify}
	for name, j := range map[string]**journal.Journal{request.From: &options.From, request.To: &options.To} {
		store, err := app.Store(name)
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: err}
		}
		defer store.Hold()()
		if *j, err = store.Journal(); err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: %w", name, err)}
		}
	}

	// Caddy bounds how long an admin request is read, and the server goes on reading to
	// know when the client leaves.
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	select {
	case copying <- struct{}{}:
		defer func() { <-copying }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	encoder := json.NewEncoder(w)
	send := func(e CopyEvent) error { return errors.Join(encoder.Encode(e), connection.Flush()) }
	reported := time.Now()
	options.Report = func(p transfer.Progress) {
		if time.Since(reported) >= reportEvery {
			reported = time.Now()
			_ = send(CopyEvent{Progress: &p}) // the context tells when the client is gone
		}
	}
	last := CopyEvent{}
	if last.Summary, err = transfer.Run(r.Context(), options); err != nil {
		last.Error = err.Error()
	}
	return send(last)
}

package compat

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// replayServer is a handler that answers a request to /c/<name>/<path> with the
// recording of that name, provided that <path> is the one it was made at: its
// status, its headers, and its body, flushed event by event and compressed when
// the client accepts it. Anything else is a 404 that says what was expected.
type replayServer struct {
	recordings map[string]*Recording
	received   func(*Recording, *http.Request, []byte)
}

// newReplayServer makes a server of recordings. Unless it is nil, received is called
// with each request that is about to be answered, and its body.
func newReplayServer(recordings []*Recording, received func(*Recording, *http.Request, []byte)) *replayServer {
	s := &replayServer{make(map[string]*Recording, len(recordings)), received}
	for _, r := range recordings {
		s.recordings[r.Name] = r
	}
	return s
}

func (s *replayServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), prefix), "/")
	recording := s.recordings[name]
	if recording == nil {
		http.Error(w, fmt.Sprintf("no recording is named %q", name), http.StatusNotFound)
		return
	}
	if want := recording.URL.EscapedPath(); "/"+path != want {
		http.Error(w, fmt.Sprintf("%s was recorded at %s, not /%s", name, want, path), http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "read body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if s.received != nil {
		s.received(recording, r, body)
	}
	recording.answer(w, r)
}

func (r *Recording) answer(w http.ResponseWriter, request *http.Request) {
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	events := r.events()
	body, coding := encode(w, request)
	switch {
	case coding != "":
		w.Header().Set("Content-Encoding", coding)
	case len(events) == 1:
		w.Header().Set("Content-Length", strconv.Itoa(len(r.Response)))
	}
	w.WriteHeader(r.Status)
	defer body.Close()
	send := http.NewResponseController(w).Flush
	for _, event := range events {
		if _, err := body.Write(event); err != nil || body.Flush() != nil || send() != nil {
			return // the client is gone
		}
	}
}

// Interface guard
var _ http.Handler = (*replayServer)(nil)

package apierror

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Envelope is what the query endpoints answer in: data, or an error.
type Envelope struct {
	Data  any     `json:"data"`
	Error *string `json:"error"`
}

// Write answers with the envelope.
func (e Envelope) Write(w http.ResponseWriter, status int) error { return WriteJSON(w, status, e) }

// WriteJSON answers with v. That the client left is no error.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	WriteText(w, status, text)
	return nil
}

// NotCached has the caches between Weir and its clients keep nothing of an answer that says nothing
// of caches itself. What an answer has depends on the key, which they need not know for one.
func NotCached(header http.Header) {
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
}

// WriteText answers with JSON that is not cached.
func WriteText(w http.ResponseWriter, status int, text []byte) { _ = writeText(w, status, text) }

func writeText(w http.ResponseWriter, status int, text []byte) error {
	header := w.Header()
	NotCached(header)
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, err := w.Write(text)
	return err
}

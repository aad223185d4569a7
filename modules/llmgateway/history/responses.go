// Package history finds earlier responses, for clients of the Responses API who refer to them.
// Nothing is kept for that: the id of a response contains the id of its record, or the record
// has the provider's id, and the bodies of the record are the input and the response. So a
// response can be found for as long as the store keeps bodies, after a restart, and on every
// node that reads the store.
package history

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// Journal is the part of a journal that is needed to find responses.
type Journal interface {
	Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error)
	Response(ctx context.Context, org, responseID string) (*storage.Record, error)
	Conversation(ctx context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error)
	Contents() storage.Contents
	AppendAnnotation(a *storage.Annotation) error
	Flush(ctx context.Context) error
	Shared() bool
}

// Store finds the responses of one caller. What is another's is not found.
type Store struct {
	Journal Journal
	// Org is the organisation of the caller.
	Org string
	// User is the user whom the caller names. A caller who names none speaks for the
	// organisation, and finds the responses of all its users.
	User string
	// Mask is what is masked in what the caller stores, besides what is masked of Org.
	Mask mask.Content
}

// ErrNotFound is why there is no response, or no item, of an id.
var ErrNotFound = errors.New("not found")

// Deleted is the property of the records of responses that were deleted. The record
// stays, for what it cost.
const Deleted = "Response-Deleted"

// IDs returns a function that makes the ids of the response of a record, and of its items.
func IDs(record uuid.UUID) func(prefix string) string {
	id, items := hex.EncodeToString(record[:]), 0
	return func(prefix string) string {
		if prefix == "resp_" {
			return prefix + id
		}
		items++
		return fmt.Sprintf("%s%s%02x", prefix, id, items-1)
	}
}

// maxSuffix bounds the length of an item's id after the id of the record.
const maxSuffix = len("_99999")

// RecordOf returns the record in an id of a response, or of an item of its input or output. A
// provider's id may look like one.
func RecordOf(id string) (record uuid.UUID, ok bool) {
	_, digits, _ := strings.Cut(id, "_")
	if len(digits) < 2*len(record) || len(digits) > 2*len(record)+maxSuffix { // OpenAI's have more
		return record, false
	}
	_, err := hex.Decode(record[:], []byte(digits[:2*len(record)]))
	return record, err == nil
}

// Response is a response, and the request that it answered.
type Response struct {
	ID string
	// Body is the response object.
	Body []byte
	// Request is the body of the request.
	Request []byte
}

// Find returns the response of an id, or ErrNotFound where it was not to be kept.
func (s *Store) Find(ctx context.Context, id string) (*Response, error) {
	_, response, err := s.find(ctx, id)
	return response, err
}

func (s *Store) find(ctx context.Context, id string) (*storage.Record, *Response, error) {
	if record, ok := RecordOf(id); ok {
		r, err := s.Journal.Request(ctx, storage.RecordKey{Org: s.Org, ID: record})
		if err == nil || !errors.Is(err, storage.ErrNotFound) {
			response, err := s.load(ctx, r, err)
			if err == nil && response.ID != id { // the id names an item of the response
				err = ErrNotFound
			}
			return r, response, err
		}
	}
	r, err := s.Journal.Response(ctx, s.Org, id)
	response, err := s.load(ctx, r, err)
	return r, response, err
}

// load returns the response of a record. failed is why the record was not found, or nil.
func (s *Store) load(ctx context.Context, r *storage.Record, failed error) (*Response, error) {
	switch {
	case errors.Is(failed, storage.ErrNotFound):
		return nil, ErrNotFound
	case failed != nil:
		return nil, unavailable(failed)
	case r.Dialect != plugins.Responses, s.User != "" && r.UserID != s.User, r.Properties[Deleted] == "true",
		r.RequestOmitted, r.ResponseOmitted, r.RequestTruncated, r.ResponseTruncated:
		return nil, ErrNotFound
	}
	content, err := s.Journal.Contents().Content(ctx, r)
	if err != nil {
		return nil, unavailable(err)
	}
	if content == nil || gjson.GetBytes(content.Request.Data, "store").Type == gjson.False {
		return nil, ErrNotFound
	}
	body := content.Response.Data
	if background(r, content.Request.Data) {
		body = finalResponse(r, content.Request.Data, body)
	}
	found := &Response{ID: gjson.GetBytes(body, "id").Str, Body: body, Request: content.Request.Data}
	if gjson.GetBytes(found.Body, "object").Str != "response" || !plugins.ValidJSON(found.Body) {
		return nil, ErrNotFound
	}
	switch gjson.GetBytes(found.Body, "status").Str {
	case "queued", "in_progress": // a provider goes on with it in the background
		return nil, ErrNotFound
	}
	return found, nil
}

// markTimeout bounds how long a deletion, or a cancellation, waits to be in force.
const markTimeout = 5 * time.Second

// Delete lets nobody find a response from now on.
func (s *Store) Delete(ctx context.Context, id string) error {
	record, _, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	return s.mark(ctx, record.ID, Deleted)
}

// unavailable returns the error for a client if the store cannot be reached, else err.
func unavailable(err error) error {
	if !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return plugins.Unavailable("store_unavailable", time.Second, "The store of responses cannot be reached: try again.")
}

// Error returns a 404 for what a client asked for if err is ErrNotFound, else err.
func Error(err error, what, id string) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return plugins.Rejected(http.StatusNotFound, "not_found", "%s with id '%.128s' not found.", what, id)
}

var _ Journal = (*journal.Journal)(nil)

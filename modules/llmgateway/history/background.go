package history

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// Cancelled is the property of the records of responses that were cancelled.
const Cancelled = "Response-Cancelled"

// ResponseID is the id of the response that a record is of.
func ResponseID(record uuid.UUID) string { return "resp_" + hex.EncodeToString(record[:]) }

// InBackground returns a response in the background under its id. A provider that speaks
// Responses has given it another id, and knows of no background.
func InBackground(response []byte, id string) []byte {
	edited, err := sjson.SetBytes(response, "id", id)
	if err == nil {
		edited, err = sjson.SetBytes(edited, "background", true)
	}
	if err != nil { // cannot happen: the response is an object
		return response
	}
	return edited
}

// EmptyResponse returns a response of a status before any of it was generated.
func EmptyResponse(request *translate.Request, record uuid.UUID, status string, e *plugins.Error) []byte {
	assembler := translate.NewAssembler(request, nil, translate.Options{ID: IDs(record)})
	if e != nil {
		assembler.Fail(e)
	} else {
		assembler.Finish(translate.ReasonStop)
	}
	assembler.End()
	response, err := sjson.SetBytes(assembler.Response(), "status", status)
	for _, field := range []string{"completed_at", "usage"} {
		if err == nil {
			response, err = sjson.SetBytes(response, field, nil)
		}
	}
	if err != nil { // cannot happen: the response is an object
		return assembler.Response()
	}
	return response
}

// background reports whether a record is of a response that the gateway generated in the
// background.
func background(r *storage.Record, request []byte) bool {
	return r.Referrer == "gateway" && gjson.GetBytes(request, "background").Type == gjson.True
}

// finalResponse returns the response of a record as it ended, also if the client cancelled it, or if
// the gateway or the provider stopped before.
func finalResponse(r *storage.Record, request, response []byte) []byte {
	body := gjson.ParseBytes(response)
	if !plugins.ValidJSON(response) || body.Get("object").Str != "response" {
		e := &plugins.Error{Code: "server_error", Message: "The gateway stopped while it generated the response."}
		if message := body.Get("error.message").Str; r.Status.N >= http.StatusBadRequest && message != "" {
			e.Message, e.Code = message, cmp.Or(body.Get("error.code").Str, e.Code)
		}
		parsed := &translate.Request{Raw: request, Model: r.RequestModel}
		parsed.State.Background, parsed.State.Stored = true, true
		response = EmptyResponse(parsed, r.ID, "failed", e)
	}
	return Ended(InBackground(response, ResponseID(r.ID)), r.Properties[Cancelled] == "true")
}

// Ended returns a response as it ended, also if the client cancelled it, or if the gateway or the
// provider stopped before.
func Ended(response []byte, cancelled bool) []byte {
	status := gjson.GetBytes(response, "status").Str
	switch {
	case cancelled:
		status = "cancelled"
	case status == "queued" || status == "in_progress":
		status = "failed"
	}
	edited, err := sjson.SetBytes(response, "status", status)
	if err == nil && status == "cancelled" {
		edited, err = sjson.SetBytes(edited, "error", nil)
	}
	if err == nil && status == "failed" && gjson.GetBytes(edited, "error").Type == gjson.Null {
		edited, err = sjson.SetRawBytes(edited, "error", []byte(`{"code":"server_error","message":"The provider's answer was cut off."}`))
	}
	if err != nil { // cannot happen: the response is an object
		return response
	}
	return edited
}

// Cancel records that a response was cancelled.
func (s *Store) Cancel(ctx context.Context, id string) error {
	record, ok := RecordOf(id)
	if !ok {
		return ErrNotFound
	}
	return s.mark(ctx, record, Cancelled)
}

// mark sets a property of a record, from now on.
func (s *Store) mark(ctx context.Context, record uuid.UUID, property string) error {
	if err := s.Journal.AppendAnnotation(&storage.Annotation{
		Org: s.Org, RequestID: record, At: storage.Millis(time.Now()), Property: &storage.Property{Name: property, Value: "true"},
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	return unavailable(s.Journal.Flush(ctx))
}

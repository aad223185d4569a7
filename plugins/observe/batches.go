package observe

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Batches is the making of a batch by OpenAI, Anthropic and Gemini, and the upload of the file
// with its calls. It costs nothing beside the calls, whose results are downloaded later: see
// ResultsOf.
// https://platform.openai.com/docs/api-reference/batch
// https://docs.claude.com/en/api/creating-message-batches
// https://ai.google.dev/gemini-api/docs/batch-api
func init() {
	Register(Dialect{
		Name:      plugins.Batches,
		Operation: "batch", // OpenTelemetry has no name for it
		Paths:     []string{"/batches", MessageBatches, "/v1/files", "/openai/files", "/{model}:batchGenerateContent"},
		Polled:    []string{"/batches/{id}"},
		Response: tables(errorFields.Under("error"), Table{
			"id":   ResponseID,
			"name": ResponseID, // Gemini
		}),
		Transcript: transcript.Format{},
	})
}

// MessageBatches is the ending of the path of Anthropic's batches.
const MessageBatches = "/messages/batches"

// InlineBatch is what a client asks of batches whose calls stand in the request that makes them:
// those of Anthropic, and of Gemini.
type InlineBatch struct {
	// Dialect is the dialect of the calls.
	Dialect plugins.Dialect
	// ID is the provider's id of the batch, "" if the request makes one or lists all.
	ID string
	// Part is "results" or "cancel", "" for the batch itself.
	Part string
	// Creates is true if a POST makes a batch.
	Creates bool
}

// ParseInlineBatch returns what the path of a request asks of such batches, false if it is of
// something else.
func ParseInlineBatch(path string) (b InlineBatch, ok bool) {
	if !strings.Contains(path, "batch") { // as calls of models pass, which are many
		return b, false
	}
	if m := messageBatch.FindStringSubmatch(path); m != nil {
		return InlineBatch{plugins.Messages, m[1], m[2], m[1] == ""}, true
	}
	if m := geminiBatch.FindStringSubmatch(path); m != nil {
		return InlineBatch{plugins.GenerateContent, m[1], m[2], m[3] != ""}, true
	}
	return b, false
}

var (
	messageBatch = regexp.MustCompile(MessageBatches + `(?:/([^/]+)(?:/(results|cancel))?)?/?$`)
	geminiBatch  = regexp.MustCompile(`/v1(?:beta|alpha)[^/]*/(?:(batches/[^/:]+)(?::(cancel))?|batches|models/[^/:]+(:batchGenerateContent))$`)
)

// IsUpload reports whether a POST of Batches uploads a file, which may have the calls of a batch.
func IsUpload(path string) bool { return strings.HasSuffix(strings.TrimSuffix(path, "/"), "/files") }

// IsChange reports whether a POST changes or ends what a provider keeps: a batch, a completion, a
// run, a response, an interaction. The answer may repeat what the call has used that made it.
func IsChange(path string) bool {
	path = strings.TrimSuffix(path, "/")
	return (strings.HasSuffix(path, "cancel") || strings.Contains(path, "/chat/completions/") || strings.Contains(path, "/runs/")) && changes.MatchString(path)
}

// changes are the paths of changes
// (https://platform.openai.com/docs/api-reference/chat/update,
// https://platform.openai.com/docs/api-reference/runs/modifyRun,
// https://platform.openai.com/docs/api-reference/responses/cancel).
var changes = regexp.MustCompile(`(/batches/[^/:]+[/:]cancel|/(responses|interactions)/[^/:]+[/:]cancel|/chat/completions/chatcmpl[-_][^/]+|/threads/[^/]+/runs/[^/]+(/cancel)?)$`)

// BatchState is what a provider tells of a batch.
type BatchState struct {
	ID string
	// Ended is true if no call of the batch will be made any more.
	Ended bool
	// Succeeded is how many calls have an answer, which is charged.
	Succeeded plugins.Count
	// Usage is the usage of all calls together, zero if the provider does not report it.
	Usage plugins.Usage
}

// ParseBatch reads what OpenAI and those like it, and Anthropic, tell of a batch. It is false
// for anything else.
func ParseBatch(body []byte) (b BatchState, ok bool) {
	if !plugins.ValidJSON(body) {
		return b, false
	}
	v := gjson.GetManyBytes(body, "id", "object", "type", "status", "processing_status", "request_counts.completed", "request_counts.succeeded", "usage")
	succeeded, usage := v[5], v[7]
	switch {
	case v[1].Str == "batch":
		b.Ended = slices.Contains([]string{"completed", "expired", "cancelled", "failed"}, v[3].Str)
	case v[2].Str == "message_batch":
		b.Ended = v[4].Str == "ended"
		succeeded = v[6]
	default:
		return b, false
	}
	b.ID = v[0].Str
	if succeeded.Type == gjson.Number {
		b.Succeeded = plugins.Known(succeeded.Int())
	}
	if input, output := usage.Get("input_tokens"), usage.Get("output_tokens"); input.Int() > 0 || output.Int() > 0 {
		b.Usage = plugins.Usage{
			Input: plugins.Known(input.Int()), CacheRead: plugins.Known(usage.Get("input_tokens_details.cached_tokens").Int()),
			Output: plugins.Known(output.Int()), Reasoning: plugins.Known(usage.Get("output_tokens_details.reasoning_tokens").Int()),
		}
	}
	return b, true
}

// Results are those of the calls of a batch, as a client downloads them: a line each,
// or, where Inline, an element each of arrays within one JSON object.
type Results struct {
	// File is the provider's id of the file with the results.
	File string
	// Batch is the provider's id of the batch, "" where the path does not name it.
	Batch  string
	Inline bool
}

var (
	resultFile    = regexp.MustCompile(`/files/([^/]+)(?:/content|:download)$`)    // OpenAI; Gemini
	resultBatch   = regexp.MustCompile(`/messages/batches/([^/]+)/results$`)       // Anthropic
	resultInlined = regexp.MustCompile(`/v1(?:beta|alpha)[^/]*/(batches/[^/:]+)$`) // Gemini
)

// ResultsOf returns the results that a GET of the path may download, false if the path is
// of something else. A file may hold something else too.
func ResultsOf(path string) (Results, bool) {
	if m := resultFile.FindStringSubmatch(path); m != nil {
		return Results{File: m[1]}, true
	}
	if m := resultBatch.FindStringSubmatch(path); m != nil {
		return Results{File: m[1], Batch: m[1]}, true
	}
	if m := resultInlined.FindStringSubmatch(path); m != nil {
		return Results{File: m[1], Batch: m[1], Inline: true}, true
	}
	return Results{}, false
}

// Result is one call of a batch.
type Result struct {
	// Key is the client's name of the call, or else its position, from 0.
	Key string
	// Status is the status code of the answer, unknown if the call was not made.
	Status plugins.Count
	// Created is when the answer was made, in seconds since 1970, 0 if it does not say.
	Created int64
	// Body is the answer, or the error.
	Body []byte
	// Info is what the answer reports. A call that failed is charged nothing.
	Info plugins.ResponseInfo
}

// ParseResult reads the result of the call at an index, false if the JSON is no result.
func ParseResult(provider string, result []byte, index int) (Result, bool) {
	if !plugins.ValidJSON(result) {
		return Result{}, false
	}
	named := gjson.GetManyBytes(result, "custom_id", "key", "metadata.key", "response", "result", "error")
	answer, failed := named[3], named[5]
	r := Result{Key: strconv.Itoa(index)}
	for _, key := range named[:3] {
		if key.Str != "" {
			r.Key = key.Str
			break
		}
	}
	switch outcome := named[4]; {
	case outcome.IsObject(): // Anthropic
		if answer = outcome.Get("message"); !answer.IsObject() {
			failed = outcome
			if e := outcome.Get("error.error"); e.IsObject() {
				failed = e
				r.Status = plugins.Known(http.StatusBadRequest)
			}
		} else {
			r.Status = plugins.Known(http.StatusOK)
		}
	case answer.IsObject() && answer.Get("body").Exists(): // OpenAI
		if status := answer.Get("status_code"); status.Type == gjson.Number {
			r.Status = plugins.Known(status.Int())
		}
		answer = answer.Get("body")
	case answer.IsObject(): // Gemini
		r.Status = plugins.Known(http.StatusOK)
	}
	if !answer.IsObject() {
		if !failed.IsObject() {
			return Result{}, false
		}
		r.Body = []byte(failed.Raw)
		errorType := cmp.Or(failed.Get("type").Str, failed.Get("status").Str, failed.Get("code").String())
		r.Info.ErrorType = errorType[:min(len(errorType), maxText)]
		r.Info.Usage.ReportedCost = plugins.KnownCost(0)
		return r, true
	}
	r.Body = []byte(answer.Raw)
	r.Info = *Read(plugins.Unknown, provider, http.Header{"Content-Type": {"application/json"}}, r.Body)
	r.Info.ServiceTier = plugins.BatchTier
	if r.Created = answer.Get("created").Int(); r.Created == 0 {
		r.Created = answer.Get("created_at").Int()
	}
	if r.Info.Usage == (plugins.Usage{}) && (r.Info.ErrorType != "" || r.Status.N >= http.StatusBadRequest) {
		r.Info.Usage.ReportedCost = plugins.KnownCost(0)
	}
	return r, true
}

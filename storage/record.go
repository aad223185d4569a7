package storage

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// Record is what Weir knows of one call but its content: who called what, how
// it went, what it cost. Text that nobody gave is "". It lives for as long as
// the store's retention; Content may go earlier.
type Record struct {
	// ID is the request id that the client sees in Service-Id.
	ID uuid.UUID
	// Org is the organisation that the record belongs to. No query sees another's.
	Org string
	// AuthHash is the lower-case hex SHA-256 of the Weir API key that the call
	// carried.
	AuthHash string

	// CreatedAt is when the request's head had been read.
	CreatedAt Timestamp
	// RespondedAt is when the response ended, 0 if there was none.
	RespondedAt Timestamp
	// Latency is the time from CreatedAt to the end of the response.
	Latency plugins.Duration
	// TimeToFirstToken is the time from CreatedAt to the first content event of
	// a stream; unknown without a stream.
	TimeToFirstToken plugins.Duration
	// Status is the status code that the provider answered, or 499 when the
	// client left before; 502 or 504 when the provider could not be reached.
	Status plugins.Count
	// EndState is how the exchange ended.
	EndState EndState

	// Provider is the lower-case name of the provider, "custom" if unknown.
	Provider string
	// Dialect is the wire format that the two sides spoke.
	Dialect plugins.Dialect
	// Model is the override, else ResponseModel, else RequestModel, which
	// includes a model named by the path.
	Model, RequestModel, ResponseModel, ModelOverride string
	// Path is the provider's path, after any prefix was stripped.
	Path string
	// TargetURL is where the request went, without secrets in its query.
	TargetURL string
	// ResponseID is the provider's own id of the response.
	ResponseID string
	// Stream is true when the answer was a stream of events.
	Stream bool
	// Finish is the provider's own finish reason.
	Finish string
	// ErrorType is the type or code of the error that the provider reported.
	ErrorType string
	// ServiceTier is the tier that the provider says it served.
	ServiceTier string
	// InferenceGeo is where the model ran, such as "us" or "europe-west4": as the
	// provider says, else as the address that was called does. Empty is unknown or
	// anywhere.
	InferenceGeo string
	// RequestBytes and ResponseBytes count body bytes on the wire; after an
	// upgrade, the bytes of the connection.
	RequestBytes, ResponseBytes int64

	// Usage is what the provider reported.
	Usage plugins.Usage
	// Cost is what the call cost by the provider's report, else by the catalogue.
	Cost plugins.Cost
	// CacheSavings is what the provider's cache made the call cheaper, by the
	// catalogue; negative where it made it more expensive.
	CacheSavings plugins.Cost
	// CacheMiss is why the provider's cache did not serve what it could have, "" where
	// it did, and where that is unknown. CacheMissAt is the part of the request that is not
	// as it was in the turn before, such as messages[4].
	CacheMiss, CacheMissAt string
	// CacheMissed are the tokens that the cache did not serve, and CacheLoss is what
	// they cost more than from the cache, by the catalogue.
	CacheMissed plugins.Count
	CacheLoss   plugins.Cost
	// PriceVersion names the price data that all of it were computed with.
	PriceVersion string
	// ParentID is the call that this one continues: the turn before, or, of the first
	// turn of a sub-agent, the call that asked for it. The zero UUID is none, or unknown.
	ParentID uuid.UUID
	// RootID is the first call of the tree that the parents make, the zero UUID of that
	// call itself.
	RootID uuid.UUID
	// Turn counts the calls of a conversation from 1. It is unknown where the calls
	// before are.
	Turn plugins.Count
	// PassthroughBilling is true when the operator's key paid, against credits.
	PassthroughBilling bool
	// Subscription is true when a subscription of the client's paid, such as that of
	// Claude or ChatGPT, and not a key. Then Cost is unknown, and ListCost is what the
	// tokens would have cost by the catalogue.
	Subscription bool
	ListCost     plugins.Cost
	// RateLimits is the JSON object of the headers in which the provider told what is
	// left of the subscription, "" for none.
	RateLimits string

	UserID                              string
	SessionID, SessionName, SessionPath string
	PromptID, PromptVersion             string
	NodeID, JobID                       string
	ExperimentID                        string
	CountryCode                         string
	Referrer                            string
	Threat                              bool
	// Properties are the caller's own labels. Session headers stand in it too,
	// under their full names.
	Properties map[string]string

	CacheEnabled bool
	// CacheReferenceID is the record whose answer was served again, the zero
	// UUID when the answer did not come from Weir's cache.
	CacheReferenceID uuid.UUID

	// Attempt counts the tries of one gateway call from 1; 0 on the proxy.
	Attempt int
	// AttemptOf is the record that answered the call which this attempt failed
	// to answer, the zero UUID otherwise.
	AttemptOf uuid.UUID
	// TraceID and SpanID are lower-case hex, from W3C traceparent.
	TraceID, SpanID string

	// RequestOmitted and ResponseOmitted say that the caller forbade to keep
	// the content; the truncated flags that it was longer than what is kept.
	RequestOmitted, ResponseOmitted     bool
	RequestTruncated, ResponseTruncated bool
	// Assets are the lower-case hex SHA-256 of media parts of the request.
	Assets []string

	// Scores and Feedback are annotations: they arrive after the record. Scores
	// are finite; FeedbackScore is never among them.
	Scores   map[string]float64
	Feedback *Feedback
	// UpdatedAt is when the newest annotation arrived, else when the record
	// ended.
	UpdatedAt Timestamp

	// Content points to the bodies, which are kept separately.
	Content ContentRef

	// Version is where this version stands in its journal, in batches alone: a
	// higher one is newer. A backend need not answer it.
	Version Position

	// Number counts the exchanges of a store in the order in which they began.
	// Only the first version of a record carries it to the journal, which takes
	// it off: backends never see one, and 0 is none.
	Number uint64
}

// Cached is true when the answer came from Weir's response cache.
func (r *Record) Cached() bool { return r.CacheReferenceID != uuid.Nil }

// Scored is true when the record has any score; feedback is one.
func (r *Record) Scored() bool { return len(r.Scores) > 0 || r.Feedback != nil }

// Score is the record's score of that name; feedback is one, 0 or 1.
func (r *Record) Score(name string) (float64, bool) {
	if name == FeedbackScore && r.Feedback != nil {
		return r.Feedback.score(), true
	}
	v, ok := r.Scores[name]
	return v, ok
}

// ScoresColumn is the compact JSON text of all scores, feedback included, with
// sorted keys: {} when there are none.
func (r *Record) ScoresColumn() string {
	if !r.Scored() {
		return "{}"
	}
	scores := make(map[string]float64, len(r.Scores)+1)
	maps.Copy(scores, r.Scores)
	if r.Feedback != nil {
		scores[FeedbackScore] = r.Feedback.score()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(scores) != nil { // a score that is no number, as JSON knows them
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// EndState is how an exchange ended.
type EndState uint8

const (
	// Complete: the client was given the whole answer.
	Complete EndState = iota
	// ClientAborted: the client left first.
	ClientAborted
	// UpstreamAborted: the provider broke off within its answer.
	UpstreamAborted
	// Failed: there was no answer, the provider could not be reached.
	Failed
	// Interrupted: the process ended first. It is the state of every version that
	// is written before the end of its exchange.
	Interrupted
)

// EndStates are all there are.
var EndStates = []EndState{Complete, ClientAborted, UpstreamAborted, Failed}

// String is the state as answers spell it.
func (s EndState) String() string {
	return [...]string{"complete", "client_aborted", "upstream_aborted", "failed", "interrupted"}[s]
}

// Feedback is a user's verdict on one answer.
type Feedback struct {
	// ID numbers the feedback within its store.
	ID        int64
	Rating    bool
	CreatedAt Timestamp
}

func (f *Feedback) score() float64 {
	if f.Rating {
		return 1
	}
	return 0
}

// FeedbackScore is the score under which feedback appears, as 0 or 1.
const FeedbackScore = "service-score-feedback"

// Content is what a record may carry besides its metrics. What must not be
// kept has no Content to stand in: the omitted side of it is empty.
type Content struct {
	Request, Response Body
	// Inputs are the inputs of a prompt template; they go with the request.
	Inputs map[string]string
	// Media is true when the request has media parts, whose hashes become the
	// record's Assets.
	Media bool
}

// ContentPart is a part of a Content, or several.
type ContentPart uint8

const (
	// RequestPart is Request, Inputs and Media.
	RequestPart ContentPart = 1 << iota
	// ResponsePart is Response.
	ResponsePart
	// WholeContent is all of it.
	WholeContent = RequestPart | ResponsePart
)

// Body is a body without Content-Encoding.
type Body struct {
	// Type is the media type, with its parameters, as it was sent.
	Type string
	// Data is nil when there is no body, or none is kept.
	Data []byte
}

// ContentRef says where in the journal a record's content stands. The zero
// ContentRef is a record without content.
type ContentRef struct {
	// Segment numbers the journal's segments from 1.
	Segment uint64
	// Ordinal counts the entries of a segment from 0.
	Ordinal uint32
}

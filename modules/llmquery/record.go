package llmquery

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// record is a request record as answers have it, but for its bodies. What is
// unknown is null.
type record struct {
	RequestID        string            `json:"request_id"`
	RequestCreatedAt string            `json:"request_created_at"`
	RequestPath      string            `json:"request_path"`
	RequestUserID    *string           `json:"request_user_id"`
	SessionID        *string           `json:"session_id"`
	RequestModel     *string           `json:"request_model"`
	RequestReferrer  *string           `json:"request_referrer"`
	Properties       map[string]string `json:"properties"`
	// RequestProperties is Properties under its older name.
	RequestProperties map[string]string `json:"request_properties"`

	ResponseID        *string       `json:"response_id"`
	ResponseCreatedAt *string       `json:"response_created_at"`
	ResponseStatus    plugins.Count `json:"response_status"`
	ResponseModel     *string       `json:"response_model"`
	EndState          string        `json:"end_state"`
	FinishReason      *string       `json:"finish_reason"`
	ErrorType         *string       `json:"error_type"`
	Stream            bool          `json:"stream"`

	Provider      string  `json:"provider"`
	Model         *string `json:"model"`
	ModelOverride *string `json:"model_override"`
	TargetURL     string  `json:"target_url"`

	DelayMS          plugins.Duration `json:"delay_ms"`
	TimeToFirstToken plugins.Duration `json:"time_to_first_token"`
	TimeToLastToken  plugins.Duration `json:"time_to_last_token"`

	TotalTokens            plugins.Count `json:"total_tokens"`
	PromptTokens           plugins.Count `json:"prompt_tokens"`
	CompletionTokens       plugins.Count `json:"completion_tokens"`
	PromptCacheReadTokens  plugins.Count `json:"prompt_cache_read_tokens"`
	PromptCacheWriteTokens plugins.Count `json:"prompt_cache_write_tokens"`
	PromptAudioTokens      plugins.Count `json:"prompt_audio_tokens"`
	CompletionAudioTokens  plugins.Count `json:"completion_audio_tokens"`
	ReasoningTokens        plugins.Count `json:"reasoning_tokens"`
	Cost                   plugins.Cost  `json:"cost"`
	CostUSD                plugins.Cost  `json:"costUSD"`
	CacheSavings           plugins.Cost  `json:"cache_savings"`
	CacheMissReason        *string       `json:"cache_miss_reason"`
	CacheMissAt            *string       `json:"cache_miss_at"`
	CacheMissedTokens      plugins.Count `json:"cache_missed_tokens"`
	CacheLoss              plugins.Cost  `json:"cache_loss"`
	PriceVersion           *string       `json:"price_version"`
	PassthroughBilling     bool          `json:"is_passthrough_billing"`
	Subscription           bool          `json:"is_subscription"`
	ListCost               plugins.Cost  `json:"list_cost"`
	// RateLimits is an object of headers.
	RateLimits json.RawMessage `json:"rate_limits"`

	ParentRequestID *string       `json:"parent_request_id"`
	RootRequestID   *string       `json:"root_request_id"`
	Turn            plugins.Count `json:"turn"`

	OrganizationID string  `json:"organization_id"`
	PromptID       *string `json:"prompt_id"`
	PromptVersion  *string `json:"prompt_version"`
	NodeID         *string `json:"node_id"`
	JobID          *string `json:"job_id"`
	CountryCode    *string `json:"country_code"`
	Threat         bool    `json:"threat"`
	TraceID        *string `json:"trace_id"`
	SpanID         *string `json:"span_id"`
	Attempt        *int    `json:"attempt"`
	AttemptOf      *string `json:"attempt_of"`

	CacheEnabled     bool    `json:"cache_enabled"`
	CacheReferenceID *string `json:"cache_reference_id"`

	Scores            json.RawMessage `json:"scores"`
	FeedbackID        *int64          `json:"feedback_id"`
	FeedbackRating    *bool           `json:"feedback_rating"`
	FeedbackCreatedAt *string         `json:"feedback_created_at"`

	Assets    []string          `json:"assets"`
	AssetIDs  []string          `json:"asset_ids"`
	AssetURLs map[string]string `json:"asset_urls"`

	RequestOmitted    bool   `json:"request_omitted"`
	ResponseOmitted   bool   `json:"response_omitted"`
	RequestTruncated  bool   `json:"request_truncated"`
	ResponseTruncated bool   `json:"response_truncated"`
	SizeBytes         int64  `json:"size_bytes"`
	UpdatedAt         string `json:"updated_at"`

	// Always null: bodies are inline, and records are in no other schema.
	SignedBodyURL *string `json:"signed_body_url"`
	LLMSchema     *string `json:"llmSchema"`
}

// appendRecord appends a record with its bodies, which pass as they are.
func appendRecord(b []byte, r *storage.Record, content *storage.Content, s shape) ([]byte, error) {
	metrics, err := json.Marshal(newRecord(r))
	if err != nil {
		return b, err
	}
	if content == nil {
		content = new(storage.Content)
	}
	b = append(b, metrics[:len(metrics)-1]...)
	if s.content {
		b = appendBody(append(b, `,"request_body":`...), content.Request)
		b = appendBody(append(b, `,"response_body":`...), content.Response)
	}
	if s.inputs {
		text, err := json.Marshal(orEmpty(content.Inputs))
		if err != nil {
			return b, err
		}
		b = append(append(b, `,"inputs":`...), text...)
	}
	if s.charges != nil {
		text, err := json.Marshal(charges(s.charges, r))
		if err != nil {
			return b, err
		}
		b = append(append(b, `,"cost_details":`...), text...)
	}
	return append(b, '}'), nil
}

// appendBody appends a body: JSON as JSON, other text as a string, and anything
// else in base64.
func appendBody(b []byte, body storage.Body) []byte {
	switch {
	case body.Data == nil:
		return append(b, "null"...)
	case !utf8.Valid(body.Data):
		b = append(b, `{"content_type":`...)
		b = appendString(b, body.Type)
		b = append(b, `,"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, body.Data)
		return append(b, `"}`...)
	case json.Valid(body.Data):
		return append(b, body.Data...)
	default:
		return appendString(b, string(body.Data))
	}
}

func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always marshals
	return append(b, text...)
}

func newRecord(r *storage.Record) *record {
	u := r.Usage
	out := &record{
		RequestID:              r.ID.String(),
		RequestCreatedAt:       r.CreatedAt.String(),
		RequestPath:            r.Path,
		RequestUserID:          orNull(r.UserID),
		SessionID:              orNull(r.SessionID),
		RequestModel:           orNull(r.RequestModel),
		RequestReferrer:        orNull(r.Referrer),
		Properties:             orEmpty(r.Properties),
		RequestProperties:      orEmpty(r.Properties),
		ResponseID:             orNull(r.ResponseID),
		ResponseStatus:         r.Status,
		ResponseModel:          orNull(r.ResponseModel),
		EndState:               r.EndState.String(),
		FinishReason:           orNull(r.Finish),
		ErrorType:              orNull(r.ErrorType),
		Stream:                 r.Stream,
		Provider:               r.Provider,
		Model:                  orNull(r.Model),
		ModelOverride:          orNull(r.ModelOverride),
		TargetURL:              r.TargetURL,
		DelayMS:                r.Latency,
		TimeToFirstToken:       r.TimeToFirstToken,
		TotalTokens:            u.Total(),
		PromptTokens:           u.Input,
		CompletionTokens:       u.Output,
		PromptCacheReadTokens:  u.CacheRead,
		PromptCacheWriteTokens: u.CacheWrite,
		PromptAudioTokens:      u.InputAudio,
		CompletionAudioTokens:  u.OutputAudio,
		ReasoningTokens:        u.Reasoning,
		Cost:                   r.Cost,
		CostUSD:                r.Cost,
		CacheSavings:           r.CacheSavings,
		CacheMissReason:        orNull(r.CacheMiss),
		CacheMissAt:            orNull(r.CacheMissAt),
		CacheMissedTokens:      r.CacheMissed,
		CacheLoss:              r.CacheLoss,
		PriceVersion:           orNull(r.PriceVersion),
		ParentRequestID:        idOrNull(r.ParentID),
		RootRequestID:          idOrNull(r.RootID),
		Turn:                   r.Turn,
		PassthroughBilling:     r.PassthroughBilling,
		Subscription:           r.Subscription,
		ListCost:               r.ListCost,
		RateLimits:             json.RawMessage(cmp.Or(r.RateLimits, "null")),
		OrganizationID:         r.Org,
		PromptID:               orNull(r.PromptID),
		PromptVersion:          orNull(r.PromptVersion),
		NodeID:                 orNull(r.NodeID),
		JobID:                  orNull(r.JobID),
		CountryCode:            orNull(r.CountryCode),
		Threat:                 r.Threat,
		TraceID:                orNull(r.TraceID),
		SpanID:                 orNull(r.SpanID),
		AttemptOf:              idOrNull(r.AttemptOf),
		CacheEnabled:           r.CacheEnabled,
		CacheReferenceID:       idOrNull(r.CacheReferenceID),
		Scores:                 json.RawMessage(r.ScoresColumn()),
		Assets:                 append([]string{}, r.Assets...),
		AssetIDs:               append([]string{}, r.Assets...),
		AssetURLs:              map[string]string{},
		RequestOmitted:         r.RequestOmitted,
		ResponseOmitted:        r.ResponseOmitted,
		RequestTruncated:       r.RequestTruncated,
		ResponseTruncated:      r.ResponseTruncated,
		SizeBytes:              r.RequestBytes + r.ResponseBytes,
		UpdatedAt:              r.UpdatedAt.String(),
	}
	if r.RespondedAt != 0 {
		out.ResponseCreatedAt = orNull(r.RespondedAt.String())
	}
	if r.Stream {
		out.TimeToLastToken = r.Latency
	}
	if r.Attempt != 0 {
		out.Attempt = &r.Attempt
	}
	if f := r.Feedback; f != nil {
		out.FeedbackID, out.FeedbackRating = &f.ID, &f.Rating
		out.FeedbackCreatedAt = orNull(f.CreatedAt.String())
	}
	return out
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func idOrNull(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	return orNull(id.String())
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// flushSize is how much of an answer is kept back, so that most failures can
// still be answered as such.
const flushSize = 1 << 20

// answer writes the answer of a call piece by piece: a page may carry more
// bodies than should stand in memory at once.
type answer struct {
	*call
	contents    storage.ContentReader
	contentType string
	buf         []byte
	started     bool
	err         error // of the first write that failed: the client left
}

func newAnswer(c *call) *answer {
	return &answer{
		call: c, contents: c.journal.Contents().Reader(storage.WholeContent), contentType: "application/json", buf: make([]byte, 0, 16<<10),
	}
}

func (a *answer) close() { a.contents.Close() }

func (a *answer) raw(json string) { a.buf = append(a.buf, json...) }

// shape says what of a record's content an answer shows, and by which prices what it
// was charged for, nil for none.
type shape struct {
	content, inputs bool
	charges         *catalog.Catalog
}

// expect says which records come next.
func (a *answer) expect(records []*storage.Record, s shape) {
	if p, ok := a.contents.(storage.Prefetcher); ok && (s.content || s.inputs) {
		p.Prefetch(records)
	}
}

func (a *answer) record(r *storage.Record, s shape) (err error) {
	var content *storage.Content
	if s.content || s.inputs {
		if content, err = a.contents.Content(a.ctx, r); err != nil {
			return err
		}
	}
	if a.buf, err = appendRecord(a.buf, r, content, s); err != nil {
		return err
	}
	if len(a.buf) > flushSize {
		a.flush()
	}
	return a.err
}

func (a *answer) flush() {
	if !a.started {
		a.started = true
		a.w.Header().Set("Content-Type", a.contentType)
	}
	if a.err == nil {
		_, a.err = a.w.Write(a.buf)
	}
	a.buf = a.buf[:0]
}

// abandon gives up an answer: as an error while nothing has been sent, else by
// breaking the connection, so that nobody takes half a page for a whole one.
func (a *answer) abandon(err error) error {
	if a.started {
		panic(http.ErrAbortHandler)
	}
	a.w.Header().Del("Content-Disposition")
	return err
}

// pageEnvelope is what pages are in. Next is the cursor behind the last row, nil on
// the last page.
type pageEnvelope struct {
	apierror.Envelope
	Next *string `json:"next"`
}

// next is the cursor behind the last row of a page that may have another behind it.
func next[K ~string, T any](page []T, limit int, cursor func(*T) *storage.Cursor[K]) *string {
	if limit == 0 || len(page) < limit {
		return nil
	}
	return new(cursor(&page[len(page)-1]).String())
}

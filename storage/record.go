package storage

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
)

// ByKey is the VerifiedBy of a call with an API key.
const ByKey = "key"

// StatusClientLeft is the Status of a call whose client left before there was an answer. Caddy and
// nginx log it, too.
const StatusClientLeft = 499

// Record is what Weir knows of one call but its content: who called what, how
// it went, what it cost. Text that nobody gave is "". It lives for as long as
// the store's retention; Content may go earlier.
type Record struct {
	masked

	// ID is the request id that the client sees in Service-Id.
	ID uuid.UUID
	// Org is the organisation that the record belongs to. No query sees records of another
	// organisation.
	Org string
	// AuthHash is the lower-case hex SHA-256 of the Weir API key that the call
	// carried.
	AuthHash string

	// CreatedAt is when the request's head had been read.
	CreatedAt Timestamp
	// RespondedAt is when the response ended, 0 without a response.
	RespondedAt Timestamp
	// Latency is the time from CreatedAt to the end of the response.
	Latency plugins.Duration
	// TimeToFirstToken is the time from CreatedAt to the first content event of
	// a stream; unknown without a stream.
	TimeToFirstToken plugins.Duration
	// Status is the status code that the provider answered; StatusClientLeft when the client
	// left before the provider answered; 502 or 504 when the provider could not be reached.
	Status plugins.Count
	// EndState is how the exchange ended.
	EndState EndState

	// Provider is the lower-case name of the provider, "custom" if unknown.
	Provider string
	// Account is the label of the configured provider that was called, "" if the caller's own
	// credentials passed through a proxy, or if no provider was called.
	Account string
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
	// ErrorMessage is why the call failed, in at most MaxErrorMessage bytes: the words of Weir,
	// or those of the provider if no content is omitted, because they may quote it.
	ErrorMessage string
	// WouldRefuse is the name of the budget or limit that observes and would have refused the
	// call, "" for none.
	WouldRefuse string
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
	// CacheMiss is why the provider's cache did not serve what it could have served, "" if
	// the cache did, or if the reason is unknown. CacheMissAt is the part of the request that
	// differs from the turn before, such as messages[4].
	CacheMiss, CacheMissAt string
	// CacheMissed are the tokens that the cache did not serve, and CacheLoss is what
	// they cost more than from the cache, by the catalogue.
	CacheMissed plugins.Count
	CacheLoss   plugins.Cost
	// RoutingSavings is what it saved that the conversation stayed at a target whose cache had it,
	// against a random one of the targets that were as good.
	RoutingSavings plugins.Cost
	// Arm is the choice of the alias that got the call, "" if the request named no alias.
	Arm string
	// PriceVersion names the price data with which all these amounts were computed.
	PriceVersion string
	// ParentID is the call that this call continues: the turn before, or, for the first
	// turn of a sub-agent, the call that asked for the sub-agent. The zero UUID means that
	// there is no such call, or that it is unknown.
	ParentID uuid.UUID
	// RootID is the first call of the tree that the parents make, the zero UUID for the
	// first call itself.
	RootID uuid.UUID
	// Turn counts the calls of a conversation from 1. It is unknown where the earlier calls
	// are unknown.
	Turn plugins.Count
	// CostCounted is true if the provider has not stated the usage on which Cost rests. Then Cost is
	// counted by the length of what passed, or, after a kill, is the most that the call can have cost.
	CostCounted bool
	// UsageComplete is true if Usage has all that the provider has billed, in one call, so that the
	// cost follows from Usage and a price. It is false if that is unknown, as in records of earlier
	// versions of Weir.
	UsageComplete bool
	// PassthroughBilling is true when the operator's key paid, against credits.
	PassthroughBilling bool
	// Subscription is true when a subscription of the client paid, such as a Claude or
	// ChatGPT subscription, and not a key. Then Cost is unknown, and ListCost is what the
	// tokens would have cost by the catalogue.
	Subscription bool
	ListCost     plugins.Cost
	// RateLimits is the JSON object of the headers in which the provider told what is
	// left of the subscription, "" for none.
	RateLimits JSONText
	// Batch is the JSON object of what the calls of a batch, or of an uploaded file, can use at
	// most, by model and endpoint; "" for any other call, and if that is not known.
	Batch JSONText

	UserID                              string
	SessionID, SessionName, SessionPath string
	PromptID, PromptVersion             string
	NodeID, JobID                       string
	ExperimentID                        string
	CountryCode                         string
	Referrer                            string
	// GatewayNode is the host name of the node that served the call, "" for calls that
	// were reported or imported.
	GatewayNode string
	// KeyID is the id of the API key, if the key was created while Weir ran, else "".
	// Project is the project that the key or the token of the call names, else "".
	KeyID, Project string
	// VerifiedBy is what verified the caller: ByKey, or the issuer of the call's token; "" for
	// a call that nothing verified.
	VerifiedBy string
	Threat     bool
	// Properties are the caller's own labels. They include session headers,
	// under their full names.
	Properties map[string]string

	CacheEnabled bool
	// CacheReferenceID is the record whose answer was served again, the zero
	// UUID when the answer did not come from Weir's cache.
	CacheReferenceID uuid.UUID
	// AnswerCache is CacheHit or CacheMiss if Weir's cache was asked, else "".
	AnswerCache string
	// SavedCost is what the answer of a CacheHit has cost when a provider gave it.
	SavedCost plugins.Cost

	// Attempt counts the tries of one gateway call from 1; 0 on the proxy.
	Attempt int
	// AttemptOf is the record that answered the call, if this attempt failed to answer
	// it; the zero UUID otherwise.
	AttemptOf uuid.UUID
	// TraceID and SpanID are lower-case hex, from W3C traceparent.
	TraceID, SpanID string

	// RequestOmitted and ResponseOmitted say that the caller forbade to keep
	// the content. RequestTruncated and ResponseTruncated say that the content was longer
	// than what is kept.
	RequestOmitted, ResponseOmitted     bool
	RequestTruncated, ResponseTruncated bool
	// Masked is the JSON object of how many values were masked, by kind; "" for none.
	Masked JSONText
	// SpanKeys are the keys by which a call that was reported is known when it is reported
	// again: see SpanFinder. A version of a record adds its keys to those of earlier versions,
	// which are not read back.
	SpanKeys []string
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

	// Version is the position of this version in its journal; a higher position is newer,
	// unless Revision says otherwise.
	// Only records in batches have a Version: a backend need not answer it.
	Version Position

	// Revision orders the versions of several journals, whose positions do not compare: one is newer
	// than all with a lower Revision. Whoever appends what it has read and changed raises it. 0 for
	// versions that only the journal has written in which the call began.
	Revision uint32

	// Number counts the exchanges of a store in the order in which they began.
	// Only the first version of a record carries the number to the journal, which
	// removes it: backends never see a number. 0 means that there is no number.
	Number uint64

	// Charges are what a ledger in the journal's directory was charged for the call: a
	// credits.Charge in JSON by the ID of each reservation. Only the journal keeps them, so that
	// the ledger can be charged again after a power cut.
	Charges map[string]string
}

// RecordKey names a record. Organisations choose IDs independently: an ID may name a
// record in each of several organisations, so nothing is looked up by the ID alone.
type RecordKey struct {
	Org string
	ID  uuid.UUID
}

// Key names the record.
func (r *Record) Key() RecordKey { return RecordKey{r.Org, r.ID} }

// Schema has every value of a record. Answers have them in this order.
var Schema = []*Column{
	{Wire: 1, Name: "request_id", Field: "request_id", Filter: true, Required: true, others: []fieldName{{RequestGroup, "id"}},
		At: func(r *Record) any { return &r.ID }, About: "The id of the record, which the client has as `Service-Id`."},
	{Wire: 4, Name: "created_at", Field: "request_created_at", Filter: true, Required: true, others: []fieldName{{RequestGroup, "created_at"}}, Sort: SortCreatedAt,
		At: func(r *Record) any { return &r.CreatedAt }, About: "When Weir had read the request's head."},
	{Wire: 16, Name: "path", Names: "path", Field: "request_path", Filter: true, Required: true, others: []fieldName{{RequestGroup, "path"}},
		At: func(r *Record) any { return &r.Path }, About: "The path at the provider, after any prefix was stripped."},
	{Wire: 43, Name: "user", Names: "user", Field: "user_id", Answer: "request_user_id", Filter: true, others: []fieldName{{RequestGroup, "user_id"}}, Sort: SortUserID,
		At: func(r *Record) any { return &r.UserID }, About: "The end user, from `Service-User-Id`."},
	{Wire: 44, Name: "session", Names: "session", Field: "session_id", Filter: true,
		At: func(r *Record) any { return &r.SessionID }, About: "The session, from `Service-Session-Id`."},
	{Wire: 13, Name: "request_model", Names: "model", Field: "request_model", Filter: true, others: []fieldName{{RequestGroup, "model"}},
		At: func(r *Record) any { return &r.RequestModel }, About: "The requested model."},
	{Wire: 53, Name: "referrer", Names: "referrer", Field: "request_referrer", Filter: true,
		At: func(r *Record) any { return &r.Referrer }, About: "The page or the program that the call came from."},
	{Wire: 55, Field: "properties",
		At: func(r *Record) any { return &r.Properties }, About: "The caller's labels."},
	{Answer: "request_properties", At: func(r *Record) any { return &r.Properties },
		About: "`properties` under an older name."},
	{Wire: 18, Name: "response_id", Field: "response_id", Detail: true, Filter: true,
		At: func(r *Record) any { return &r.ResponseID }, About: "The provider's id of the answer, such as `chatcmpl-…` or `msg_…`."},
	{Wire: 5, Name: "responded_at", Field: "response_created_at", Filter: true,
		At: func(r *Record) any { return &r.RespondedAt }, About: "When the answer ended."},
	{Wire: 8, Name: "status", Field: "status", Answer: "response_status", Filter: true, others: []fieldName{{ResponseGroup, "status"}},
		At:    func(r *Record) any { return &r.Status },
		About: "The status of the provider's answer; 499 if the client disconnected before, 502 or 504 if the provider was unreachable."},
	{Wire: 14, Name: "response_model", Names: "model", Field: "response_model", others: []fieldName{{ResponseGroup, "body_model"}, {ResponseGroup, "model"}}, Sort: SortBodyModel,
		At: func(r *Record) any { return &r.ResponseModel }, About: "The model that the provider reported."},
	{Wire: 9, Name: "end_state", Field: "end_state", Filter: true,
		At:    func(r *Record) any { return &r.EndState },
		About: "How the call ended: `complete`, `client_aborted`, `upstream_aborted` (the provider broke off, or its answer states an error), `failed` or, after a crash, `interrupted`."},
	{Wire: 20, Name: "finish", Names: "finish", Field: "finish_reason", Filter: true,
		At: func(r *Record) any { return &r.Finish }, About: "The provider's finish reason, such as `stop` or `length`; `ended` for a batch whose calls have records."},
	{Wire: 21, Name: "error_type", Names: "error_type", Field: "error_type", Filter: true,
		At: func(r *Record) any { return &r.ErrorType }, About: "The type or code of the error that the provider reported, else that of its status."},
	{Wire: 96, Name: "error_message", Names: "error_message", Field: "error_message", Filter: true,
		At: func(r *Record) any { return &r.ErrorMessage }, About: "Why the call failed, in the words of Weir or, unless content is omitted, of the provider."},
	{Name: "error_group", Names: "error_group", Field: "error_group", Filter: true,
		At: func(r *Record) any { return new(errorGroup(r.ErrorMessage)) }, About: "`error_message` with `…` in place of numbers, ids and users: errors of one cause have it in common."},
	{Wire: 99, Name: "would_refuse", Names: "would_refuse", Field: "would_refuse", Filter: true,
		At:    func(r *Record) any { return &r.WouldRefuse },
		About: "The budget or limit with `observe` that would have refused the call; null if none would."},
	{Wire: 19, Name: "stream", Field: "stream", Filter: true,
		At: func(r *Record) any { return &r.Stream }, About: "Whether the answer was a stream of events."},
	{Wire: 10, Name: "provider", Names: "provider", Field: "provider", Filter: true, Required: true,
		At: func(r *Record) any { return &r.Provider }, About: "The name of the provider, `custom` if it is unknown."},
	{Wire: 97, Name: "account", Names: "account", Field: "account", Filter: true,
		At:    func(r *Record) any { return &r.Account },
		About: "The label of the configured provider that was called, such as `a` for `provider a openai`; null if a proxy passed the caller's own credentials."},
	{Wire: 110, Name: "arm", Names: "arm", Field: "arm", Filter: true,
		At:    func(r *Record) any { return &r.Arm },
		About: "The choice of the alias that got the call: its `arm`, else its model; null if the request named no alias."},
	{Wire: 12, Name: "model", Names: "model", Field: "model", Filter: true,
		At: func(r *Record) any { return &r.Model }, About: "The model of the override, else of the answer, else of the request."},
	{Wire: 15, Name: "model_override", Names: "model", Field: "model_override", others: []fieldName{{RequestGroup, "modelOverride"}},
		At: func(r *Record) any { return &r.ModelOverride }, About: "The model of `Service-Model-Override`."},
	{Wire: 17, Name: "target_url", Names: "target_url", Field: "target_url", Filter: true, Required: true,
		At: func(r *Record) any { return &r.TargetURL }, About: "The address that was called, without secrets."},
	{Wire: 6, Name: "latency", Field: "latency", Answer: "delay_ms", Filter: true, Sort: SortLatency,
		At: func(r *Record) any { return &r.Latency }, About: "Milliseconds until the answer ended."},
	{Wire: 7, Name: "ttft", Field: "time_to_first_token", Filter: true, Sort: SortTimeToFirstToken,
		At:    func(r *Record) any { return &r.TimeToFirstToken },
		About: "Milliseconds until the first content of a stream; null without a stream."},
	{Field: "time_to_last_token",
		At: func(r *Record) any {
			if !r.Stream {
				return nil
			}
			return &r.Latency
		},
		About: "Milliseconds until the end of a stream; null without a stream."},
	{Field: "total_tokens", Filter: true, Sort: SortTotalTokens,
		At: func(r *Record) any { return new(r.Usage.Total()) }, About: "The sum of `prompt_tokens` and `completion_tokens`."},
	{Wire: 25, Name: "input", Field: "prompt_tokens", Filter: true, Sort: SortPromptTokens,
		At: func(r *Record) any { return &r.Usage.Input }, About: "All input that the provider charges, cache reads and writes included."},
	{Wire: 26, Name: "output", Field: "completion_tokens", Filter: true, others: []fieldName{{ResponseGroup, "body_tokens"}}, Sort: SortCompletionTokens,
		At: func(r *Record) any { return &r.Usage.Output }, About: "All output, reasoning included."},
	{Wire: 27, Name: "cache_read", Field: "prompt_cache_read_tokens", Filter: true,
		At: func(r *Record) any { return &r.Usage.CacheRead }, About: "The part of `prompt_tokens` that the provider's cache served."},
	{Wire: 28, Name: "cache_write", Field: "prompt_cache_write_tokens", Filter: true,
		At:    func(r *Record) any { return &r.Usage.CacheWrite },
		About: "The part of `prompt_tokens` that was written to the provider's cache."},
	{Wire: 29, Name: "cache_write_1h", Field: "prompt_cache_write_1h_tokens", Detail: true,
		At:    func(r *Record) any { return &r.Usage.CacheWrite1h },
		About: "The part of `prompt_cache_write_tokens` that the cache keeps for an hour, at a price of its own."},
	{Wire: 30, Name: "input_audio", Field: "prompt_audio_tokens", Detail: true,
		At: func(r *Record) any { return &r.Usage.InputAudio }, About: "The part of `prompt_tokens` that was audio."},
	{Wire: 34, Name: "output_audio", Field: "completion_audio_tokens", Detail: true,
		At: func(r *Record) any { return &r.Usage.OutputAudio }, About: "The part of `completion_tokens` that was audio."},
	{Wire: 33, Name: "reasoning", Field: "reasoning_tokens",
		At: func(r *Record) any { return &r.Usage.Reasoning }, About: "The part of `completion_tokens` that the model spent on reasoning."},
	{Wire: 38, Name: "web_searches", Field: "web_searches", Detail: true,
		At: func(r *Record) any { return &r.Usage.WebSearches }, About: "Searches that the provider charges by the piece."},
	{Wire: 22, Name: "service_tier", Field: "service_tier", Detail: true,
		At: func(r *Record) any { return &r.ServiceTier }, About: "The service tier that the provider reported, such as `default`, `flex` or `batch`."},
	{Wire: 77, Name: "inference_geo", Field: "inference_geo", Detail: true,
		At: func(r *Record) any { return &r.InferenceGeo }, About: "Where the model ran, such as `us` or `europe-west4`; null if that is unknown or anywhere."},
	{Wire: 40, Name: "cost", Field: "cost", Filter: true, Sort: SortCost,
		At: func(r *Record) any { return &r.Cost }, About: "US dollars; null if a price or the usage is unknown."},
	{Answer: "costUSD", At: func(r *Record) any { return &r.Cost },
		About: "`cost` under an older name."},
	{Wire: 78, Name: "cache_savings", Field: "cache_savings", Filter: true,
		At:    func(r *Record) any { return &r.CacheSavings },
		About: "US dollars that the provider's cache saved, by the catalogue: the cost without the cache, minus `cost`. Negative if cache writes cost more; null if the cost or the use of a cache is unknown, or if the provider stated the cost."},
	{Wire: 85, Name: "cache_miss", Names: "cache_miss", Field: "cache_miss_reason", Filter: true,
		At:    func(r *Record) any { return &r.CacheMiss },
		About: "Why the provider's cache served less than the previous turn had sent: `below_minimum`, `never_marked`, `model`, `other_key`, `tools_changed`, `system_changed`, `history_edited`, `ttl` or `unexplained`. Null if the cache served all of it, if there is no previous turn, or if the provider does not report its cache."},
	{Wire: 86, Name: "cache_miss_at", Field: "cache_miss_at", Detail: true,
		At:    func(r *Record) any { return &r.CacheMissAt },
		About: "The part of the request that changed since the previous turn: `tools`, `system`, or a message, as in `messages[4]`."},
	{Wire: 87, Name: "cache_missed", Field: "cache_missed_tokens", Filter: true,
		At: func(r *Record) any { return &r.CacheMissed }, About: "Tokens of the previous turn that the cache did not serve."},
	{Wire: 88, Name: "cache_loss", Field: "cache_loss", Filter: true, Sort: SortCacheLoss,
		At: func(r *Record) any { return &r.CacheLoss }, About: "The extra cost of `cache_missed_tokens`, in US dollars, by the catalogue."},
	{Wire: 111, Name: "routing_savings", Field: "routing_savings", Filter: true,
		At:    func(r *Record) any { return &r.RoutingSavings },
		About: "US dollars that it saved to stay where the provider's cache had the conversation: `cache_savings`, times the share of the other targets that would have been as good; null where the gateway had no choice."},
	{Wire: 41, Name: "price_version", Field: "price_version", Detail: true,
		At: func(r *Record) any { return &r.PriceVersion }, About: "The price list that `cost` was computed with."},
	{Wire: 90, Name: "cost_counted", Field: "is_cost_counted", Filter: true,
		At:    func(r *Record) any { return &r.CostCounted },
		About: "Whether `cost` is computed from the length of the answer, because the answer was broken off before the provider stated its usage. For an `interrupted` call, and for one that a budget counts and whose answer states no usage, `cost` is the most that the call can have cost. The usage stays as stated."},
	{Wire: 102, Name: "usage_complete", Field: "is_usage_complete", Filter: true,
		At:    func(r *Record) any { return &r.UsageComplete },
		About: "Whether the tokens and pieces of the record are all that the provider has billed for the call, so that `weir reprice` can compute `cost` again."},
	{Wire: 42, Name: "passthrough", Field: "is_passthrough_billing", Filter: true,
		At: func(r *Record) any { return &r.PassthroughBilling }, About: "Whether the call used the operator's key, and credits paid."},
	{Wire: 79, Name: "subscription", Field: "is_subscription", Filter: true,
		At:    func(r *Record) any { return &r.Subscription },
		About: "Whether the client's subscription paid, such as one of Claude or ChatGPT. Then `cost` is null."},
	{Wire: 80, Name: "list_cost", Field: "list_cost", Detail: true,
		At:    func(r *Record) any { return &r.ListCost },
		About: "US dollars that the tokens of a call on a subscription would have cost, by the catalogue. No `cost` includes it."},
	{Wire: 81, Name: "rate_limits", Field: "rate_limits", Detail: true,
		At:    func(r *Record) any { return &r.RateLimits },
		About: "The provider's headers that report the rest of the subscription, by their lower-case names."},
	{Wire: 93, Name: "batch", Field: "batch", Detail: true,
		At:    func(r *Record) any { return &r.Batch },
		About: "The most that the calls of a batch, or of an uploaded batch file, can use, by model and endpoint; null if unknown."},
	{Wire: 82, Name: "parent", Field: "parent_request_id", Filter: true,
		At:    func(r *Record) any { return &r.ParentID },
		About: "The call that this call continues: the previous turn or, for the first turn of a sub-agent, the call that started it. Null if there is none, or if it is unknown."},
	{Wire: 83, Name: "root", Names: "root", Field: "root_request_id", Filter: true,
		At: func(r *Record) any { return &r.RootID }, About: "The first call of the tree; null for that call itself."},
	{Wire: 84, Name: "turn", Field: "turn", Filter: true,
		At:    func(r *Record) any { return &r.Turn },
		About: "The number of the call in its conversation, from 1; null if the previous calls are unknown."},
	{Wire: 2, Name: "org", Names: "org", Field: "organization_id", Filter: true, Required: true, others: []fieldName{{RequestGroup, "org_id"}},
		At: func(r *Record) any { return &r.Org }, About: "The organisation that the record belongs to."},
	{Wire: 47, Name: "prompt", Names: "prompt", Field: "prompt_id", Filter: true, others: []fieldName{{RequestGroup, "prompt_id"}},
		At: func(r *Record) any { return &r.PromptID }, About: "The prompt template, from `Service-Prompt-Id`."},
	{Wire: 48, Name: "prompt_version", Names: "prompt_version", Field: "prompt_version", Filter: true,
		At: func(r *Record) any { return &r.PromptVersion }, About: "The version of the prompt template."},
	{Wire: 49, Name: "node", Names: "node", Field: "node_id", Filter: true, others: []fieldName{{RequestGroup, "node_id"}},
		At: func(r *Record) any { return &r.NodeID }, About: "The node of the caller's workflow, from `Service-Node-Id`."},
	{Wire: 50, Name: "job", Names: "job", Field: "job_id", Filter: true,
		At: func(r *Record) any { return &r.JobID }, About: "The caller's job, from `Service-Job-Id`."},
	{Wire: 89, Name: "gateway_node", Names: "gateway_node", Field: "gateway_node", Filter: true,
		At: func(r *Record) any { return &r.GatewayNode }, About: "The host name of the node that served the call; null for calls that were reported or imported."},
	{Wire: 91, Name: "key_id", Names: "key_id", Field: "key_id", Filter: true,
		At: func(r *Record) any { return &r.KeyID }, About: "The id of the API key, if it was created while Weir ran."},
	{Wire: 92, Name: "project", Names: "project", Field: "project", Filter: true,
		At: func(r *Record) any { return &r.Project }, About: "The project that the API key or the token of the call names."},
	{Wire: 94, Name: "verified_by", Names: "verified_by", Field: "verified_by", Filter: true,
		At: func(r *Record) any { return &r.VerifiedBy }, About: "What verified the caller: `key`, or the issuer of the token; null if nothing did."},
	{Wire: 52, Name: "country", Names: "country", Field: "country_code", Filter: true, others: []fieldName{{RequestGroup, "country_code"}},
		At: func(r *Record) any { return &r.CountryCode }, About: "The country of the client, as the edge proxy states it."},
	{Wire: 54, Name: "threat", Field: "threat", Filter: true,
		At: func(r *Record) any { return &r.Threat }, About: "Whether the edge proxy marked the call as a threat."},
	{Wire: 60, Name: "trace_id", Field: "trace_id", Detail: true, Filter: true,
		At: func(r *Record) any { return &r.TraceID }, About: "From `traceparent`, in hexadecimal."},
	{Wire: 61, Name: "span_id", Field: "span_id", Detail: true,
		At: func(r *Record) any { return &r.SpanID }, About: "From `traceparent`, in hexadecimal."},
	{Wire: 58, Name: "attempt", Field: "attempt", Detail: true,
		At: func(r *Record) any { return &r.Attempt }, About: "The number of the try, from 1; null outside the gateway."},
	{Wire: 59, Name: "attempt_of", Field: "attempt_of", Filter: true,
		At: func(r *Record) any { return &r.AttemptOf }, About: "The request that answered the call, if this attempt did not."},
	{Wire: 56, Name: "cache_enabled", Field: "cache_enabled", Filter: true,
		At: func(r *Record) any { return &r.CacheEnabled }, About: "Whether the caller asked for Weir's cache."},
	{Wire: 57, Name: "cache_reference", Field: "cache_reference_id", Filter: true,
		At: func(r *Record) any { return &r.CacheReferenceID }, About: "The request whose answer was served from the cache."},
	{Wire: 100, Name: "answer_cache", Names: "answer_cache", Field: "answer_cache", Filter: true,
		At:    func(r *Record) any { return &r.AnswerCache },
		About: "`hit` if Weir's cache answered, `miss` if it had no answer to this request and the provider was asked; null if the cache was not used."},
	{Wire: 101, Name: "saved_cost", Field: "saved_cost", Filter: true,
		At:    func(r *Record) any { return &r.SavedCost },
		About: "US dollars that a hit in Weir's cache saved: what the same answer cost when the provider gave it. No `cost` includes it."},
	{Field: "scores", At: func(r *Record) any { return new(r.allScores()) },
		About: "The scores by name; feedback is `service-score-feedback`, 0 or 1."},
	{Field: "feedback_id",
		At:    ofFeedback(func(f *Feedback) *int64 { return &f.ID }),
		About: "The number of the feedback."},
	{Field: FeedbackScore, Answer: "feedback_rating",
		At:    ofFeedback(func(f *Feedback) *bool { return &f.Rating }),
		About: "Whether the answer was good, by its feedback."},
	{Field: "feedback_created_at",
		At:    ofFeedback(func(f *Feedback) *Timestamp { return &f.CreatedAt }),
		About: "When the feedback was given."},
	{Wire: 66, Field: "assets",
		At: func(r *Record) any { return &r.Assets }, About: "The SHA-256 of each image, audio or file of the request."},
	{Answer: "asset_ids", At: func(r *Record) any { return &r.Assets },
		About: "`assets` under an older name."},
	{Answer: "asset_urls", At: func(*Record) any { return new(map[string]string) },
		About: "Always empty."},
	{Wire: 62, Name: "request_omitted", Field: "request_omitted", Detail: true,
		At: func(r *Record) any { return &r.RequestOmitted }, About: "Whether the caller forbade keeping the request's body."},
	{Wire: 63, Name: "response_omitted", Field: "response_omitted", Detail: true,
		At: func(r *Record) any { return &r.ResponseOmitted }, About: "Whether the caller forbade keeping the answer's body."},
	{Wire: 64, Name: "request_truncated", Field: "request_truncated", Detail: true,
		At: func(r *Record) any { return &r.RequestTruncated }, About: "Whether the request's body was longer than the kept part."},
	{Wire: 65, Name: "response_truncated", Field: "response_truncated", Detail: true,
		At: func(r *Record) any { return &r.ResponseTruncated }, About: "Whether the answer's body was longer than the kept part."},
	{Wire: 98, Name: "masked", Field: "masked", Filter: true,
		At: func(r *Record) any { return &r.Masked }, About: "How many values were masked before storage, by kind, such as `{\"email\":2}`; null if none was."},
	{Field: "size_bytes", Required: true,
		At:    func(r *Record) any { return new(plugins.Known(r.RequestBytes + r.ResponseBytes)) },
		About: "Bytes of both bodies on the wire."},
	{Wire: 69, Name: "updated_at", Field: "updated_at", Detail: true, Required: true,
		At: func(r *Record) any { return &r.UpdatedAt }, About: "When the newest annotation arrived, else when the call ended."},
	{Answer: "signed_body_url", At: func(*Record) any { return nil },
		About: "Always null: bodies are inline."},
	{Answer: "llmSchema", At: func(*Record) any { return nil },
		About: "Always null."},

	// These are in no answer.
	{Wire: 67, At: func(r *Record) any { return &r.Scores }},
	{Wire: 68, At: func(r *Record) any { return &r.Feedback }},
	{Wire: 3, Name: "auth_hash", Names: "auth_hash", others: []fieldName{{RequestGroup, "auth_hash"}}, At: func(r *Record) any { return &r.AuthHash }},
	{Wire: 45, Name: "session_name", Names: "session_name", At: func(r *Record) any { return &r.SessionName }},
	{Wire: 51, Name: "experiment", Names: "experiment", At: func(r *Record) any { return &r.ExperimentID }},
	{Wire: 46, Name: "session_path", Detail: true, At: func(r *Record) any { return &r.SessionPath }},
	{Wire: 11, Name: "dialect", Detail: true, At: func(r *Record) any { return &r.Dialect }},
	{Wire: 23, Name: "request_bytes", Detail: true, At: func(r *Record) any { return &r.RequestBytes }},
	{Wire: 24, Name: "response_bytes", Detail: true, At: func(r *Record) any { return &r.ResponseBytes }},
	{Wire: 31, Name: "cache_read_audio", Detail: true, At: func(r *Record) any { return &r.Usage.CacheReadAudio }},
	{Wire: 32, Name: "input_image", Detail: true, At: func(r *Record) any { return &r.Usage.InputImage }},
	{Wire: 35, Name: "output_image", Detail: true, At: func(r *Record) any { return &r.Usage.OutputImage }},
	{Wire: 36, Name: "billed_input", Detail: true, At: func(r *Record) any { return &r.Usage.BilledInput }},
	{Wire: 37, Name: "billed_output", Detail: true, At: func(r *Record) any { return &r.Usage.BilledOutput }},
	{Wire: 73, Name: "search_units", Detail: true, At: func(r *Record) any { return &r.Usage.SearchUnits }},
	{Wire: 74, Name: "images", Detail: true, At: func(r *Record) any { return &r.Usage.Images }},
	{Wire: 75, Name: "pages", Detail: true, At: func(r *Record) any { return &r.Usage.Pages }},
	{Wire: 76, Name: "audio_duration", Detail: true, At: func(r *Record) any { return &r.Usage.AudioDuration }},
	{Wire: 39, Name: "reported_cost", Detail: true, At: func(r *Record) any { return &r.Usage.ReportedCost }},
	{Wire: 70, Name: "content_segment", Detail: true, At: func(r *Record) any { return &r.Content.Segment }},
	{Wire: 71, Name: "content_ordinal", Detail: true, At: func(r *Record) any { return &r.Content.Ordinal }},
	{Wire: 72, At: func(r *Record) any { return &r.Number }},
	{Wire: 95, At: func(r *Record) any { return &r.SpanKeys }},
	{Wire: 112, At: func(r *Record) any { return &r.Charges }},
	{Wire: 113, Name: "revision", Detail: true, At: func(r *Record) any { return &r.Revision }},
}

// ofFeedback is the At of a value of feedback.
func ofFeedback[T any](at func(*Feedback) *T) func(*Record) any {
	return func(r *Record) any {
		if r.Feedback == nil {
			return nil
		}
		return at(r.Feedback)
	}
}

// What Weir's cache did for a call.
const (
	CacheHit = "hit"
	// CacheMiss: the provider was asked, and later calls may get its answer. The journal
	// therefore keeps a stream as it came.
	CacheMiss = "miss"
)

// Cached is true when the answer came from Weir's response cache.
func (r *Record) Cached() bool { return r.CacheReferenceID != uuid.Nil }

// Scored is true when the record has any score; feedback counts as a score.
func (r *Record) Scored() bool { return len(r.Scores) > 0 || r.Feedback != nil }

// Score returns the record's score with a name; feedback is a score of 0 or 1.
func (r *Record) Score(name string) (float64, bool) {
	if name == FeedbackScore && r.Feedback != nil {
		return r.Feedback.score(), true
	}
	v, ok := r.Scores[name]
	return v, ok
}

// allScores are the scores with feedback among them.
func (r *Record) allScores() map[string]float64 {
	if r.Feedback == nil {
		return r.Scores
	}
	scores := make(map[string]float64, len(r.Scores)+1)
	maps.Copy(scores, r.Scores)
	scores[FeedbackScore] = r.Feedback.score()
	return scores
}

// ScoresColumn is the compact JSON text of all scores, feedback included, with
// sorted keys: {} without scores.
func (r *Record) ScoresColumn() string {
	if !r.Scored() {
		return "{}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(r.allScores()) != nil { // a score that JSON has no number for, such as NaN
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// JSONText is a JSON value as text, "" for none.
type JSONText string

// EndState is how an exchange ended.
type EndState uint8

const (
	// Complete: the client was given the whole answer.
	Complete EndState = iota
	// ClientAborted: the client left first.
	ClientAborted
	// UpstreamAborted: the provider broke off within its answer, or states there that it failed.
	UpstreamAborted
	// Failed: there was no answer, the provider could not be reached.
	Failed
	// Interrupted: the process ended first. It is the state of every version that
	// is written before the end of its exchange.
	Interrupted
)

// EndStates are the states in which an exchange can end. Interrupted is not among them.
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

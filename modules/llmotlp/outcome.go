package llmotlp

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// exceptions are the errors of the providers' SDKs by the ends of their names, each with the
// status of its answer, or with 502 or 504 if there was no answer. One generator makes OpenAI's
// and Anthropic's SDKs, others use the same names, and frameworks put words before them.
var exceptions = []struct {
	end    string
	status int64
}{
	{"APIConnectionError", 502},
	{"APITimeoutError", 504},
	{"AuthenticationError", 401},
	{"BadRequestError", 400},
	{"ConflictError", 409},
	{"InternalServerError", 500},
	{"NotFoundError", 404},
	{"OverloadedError", 529},
	{"PermissionDeniedError", 403},
	{"RateLimitError", 429},
	{"RequestTooLargeError", 413},
	{"ServiceUnavailableError", 503},
	{"UnprocessableEntityError", 422},
	{"ContextWindowExceededError", 400},
	{"ContextWindowOverflowException", 400},
	{"ContentPolicyViolationError", 400},
	{"timeout", 504},
	// AWS
	{"ThrottledException", 429},
	{"ThrottlingException", 429},
	{"TooManyRequestsException", 429},
	{"ValidationException", 400},
	{"AccessDeniedException", 403},
	{"ResourceNotFoundException", 404},
	{"ServiceUnavailableException", 503},
	{"InternalServerException", 500},
	// Google
	{"ResourceExhausted", 429},
	{"PermissionDenied", 403},
	{"Unauthenticated", 401},
	{"InvalidArgument", 400},
	{"ServiceUnavailable", 503},
	{"DeadlineExceeded", 504},
}

// stated finds the status in the message of an error: "Error code: 429 - …", "429
// RESOURCE_EXHAUSTED", "status_code: 429, model_name: …".
var stated = regexp.MustCompile(`(?i)(?:^|(?:error|status|http)(?:[ _-]?code)?["']?[ :=]+)([45]\d\d)\b`)

// statusOf returns the status that the type or the message of an error stands for, 0 for none.
func statusOf(kind, message string) int64 {
	name := kind[strings.LastIndexAny(kind, ".:")+1:]
	for _, e := range exceptions {
		if strings.HasSuffix(name, e.end) {
			return e.status
		}
	}
	if found := stated.FindStringSubmatch(message); found != nil {
		status, _ := strconv.ParseInt(found[1], 10, 64) // three digits
		return status
	}
	return 0
}

// outcome returns the status of the answer, if the span, the name of the error or its message
// says it, and how the call ended.
func (c *call) outcome() (plugins.Count, storage.EndState) {
	var status plugins.Count
	for _, name := range statusNames {
		if n := c.count(name); n.N >= 100 && n.N <= 599 {
			status = n
			break
		}
	}
	if !c.failed() {
		return status.Or(plugins.Known(http.StatusOK)), storage.Complete
	}
	if status.Valid {
		return status, storage.Complete
	}
	kind, message := c.failure()
	switch status := statusOf(kind, message); status {
	case 0:
		// It may be the client's own error: the provider's status is unknown.
		if c.usage().Output.Valid {
			return plugins.Count{}, storage.UpstreamAborted
		}
		return plugins.Count{}, storage.Failed
	case 502, 504:
		return plugins.Known(status), storage.Failed
	default:
		return plugins.Known(status), storage.Complete
	}
}

// failed reports whether a call failed. LangSmith's exporter writes OK for a failure, beside its exception.
func (c *call) failed() bool {
	return c.span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR || c.text("error.type") != "" ||
		c.text(observation+"level") == "ERROR" || c.text("success") == "false" ||
		slices.ContainsFunc(c.span.GetEvents(), isException) && !c.counts().used()
}

func isException(event *tracepb.Span_Event) bool { return event.GetName() == "exception" }

// failure returns the type and the message of the error.
func (c *call) failure() (kind, message string) {
	for _, event := range c.span.GetEvents() {
		if isException(event) {
			thrown := make(attributes)
			thrown.add(event.Attributes)
			kind, message = thrown.text("exception.type"), thrown.text("exception.message")
		}
	}
	if !c.failed() {
		return c.text("error.type"), ""
	}
	return cmp.Or(c.text("error.type"), kind), cmp.Or(message, c.span.GetStatus().GetMessage(), c.text("error.message", "error", observation+"status_message"))
}

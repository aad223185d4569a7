package observe

import (
	"bytes"

	"github.com/weirhq/weir/plugins"
)

// fast is the speed that has a price of its own.
const fast = "fast"

func (x *observer) reach(p plugins.Phase) { x.phase = max(x.phase, p) }

// value takes what the scanner reads.
func (x *observer) value(f Field, v value) {
	if f.again() && v.kind != null {
		x.scan.template.learning = false
	}
	switch {
	case v.kind == null:
	case f >= inPart:
		x.part(f&^inPart, v)
	case f >= firstCount:
		if n, ok := f.count(v); ok {
			x.report.set(f, n)
			x.changed = true
			x.seen.Content = x.seen.Content || f == Image
		}
	case f >= firstDetail:
		x.readDetail(f, v)
	case f >= firstError:
		x.failure(f, v)
	default:
		x.response(f, v)
	}
}

// response takes a value that is neither a count nor a part of an error.
func (x *observer) response(f Field, v value) {
	switch f {
	case Model:
		if set(&x.seen.Model, v) { // on which may depend what is billed
			x.changed = true
		}
	case ResponseID:
		// Groq's Compound has another id in each chunk.
		if x.seen.ResponseID == "" {
			set(&x.seen.ResponseID, v)
		}
	case FinishReason:
		x.finish(v)
	case Choice:
		x.other = false
		x.earlier.finish, x.earlier.phase = x.seen.Finish, x.phase
	case ChoiceIndex:
		if n, ok := parseCount(v.bytes); ok && n > 0 { // it may come after the reason
			x.other = true
			x.seen.Finish, x.phase = x.earlier.finish, x.earlier.phase
		}
	case ServiceTier:
		if x.seen.ServiceTier != fast {
			set(&x.seen.ServiceTier, v)
		}
	case Speed: // beside the standard service tier
		if string(v.bytes) == fast {
			x.seen.ServiceTier = fast
		}
	case InferenceGeo:
		set(&x.seen.InferenceGeo, v)
	case Content:
		if v.kind == object || v.kind == text && len(v.bytes) > 0 {
			x.seen.Content = true
		}
	case Item, ItemAction, Items, SearchQuery, Unstated, Parts, Part, PictureModel:
		x.billed(f, v)
	case OutputType:
		x.outputType(v)
	case EventType:
		x.event(v.bytes)
	case sentinel:
		if string(v.bytes) == "DONE" {
			x.reach(plugins.Ended)
		}
	case Done:
		if v.kind == object || string(v.bytes) == "true" {
			x.reach(plugins.Ended)
		}
	case shape:
		x.shape(v)
	case Report:
		x.supersede()
	}
}

// outputType takes the type of an item or block: a tool call is content.
func (x *observer) outputType(v value) {
	if bytes.HasSuffix(v.bytes, []byte("_call")) || bytes.HasSuffix(v.bytes, []byte("tool_use")) {
		x.seen.Content = true
	}
}

// set keeps the text of v, and allocates only for one that is new. It reports whether the
// text was new.
func set(s *string, v value) bool {
	if v.kind != text || len(v.bytes) == 0 || *s == string(v.bytes) {
		return false
	}
	*s = string(v.bytes)
	return true
}

// finish takes the finish reason of the first choice, or the status of a response, unless
// it says that there is more to come.
func (x *observer) finish(v value) {
	if v.kind != text || len(v.bytes) == 0 || v.index > 0 || x.other {
		return
	}
	switch string(v.bytes) {
	case "in_progress", "queued", "not_finished":
		return
	}
	set(&x.seen.Finish, v)
	x.reach(x.dialect.AfterFinish)
}

func (x *observer) event(name []byte) {
	if string(name) == "error" {
		x.failed = true
		x.fail(anyError, Unnamed)
	}
	for _, last := range x.dialect.LastEvents {
		if last == string(name) {
			x.reach(plugins.Ended)
		}
	}
}

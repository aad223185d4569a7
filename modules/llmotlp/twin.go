package llmotlp

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/weirhq/weir/storage"
)

// Twins are reports of one call by two libraries of one process of which neither is the parent of the
// other: a library that learns of a call by callbacks, such as LangChain's, makes no span current. They
// have the same model, tokens and outcome, one lies within the time of the other, and at most one knows
// the provider's id. This proves nothing, because calls can be equal. So what would mix two people or
// hide a call makes no twins: two records of one call are the lesser evil.

// process returns a text that only resources of one process share. A resource that does not name its
// process is known by the batch in which it came.
func process(resource *tracepb.ResourceSpans, common attributes) string {
	id := common.identity()
	named := common.text("service.instance.id") != "" ||
		common.text("process.pid") != "" && common.text("host.id", "host.name", "container.id", "k8s.pod.uid") != ""
	if named {
		return id
	}
	for _, scope := range resource.GetScopeSpans() {
		for _, first := range scope.GetSpans() {
			return id + string(first.GetTraceId()) + string(first.GetSpanId())
		}
	}
	return id
}

// The bounds of a search for a twin, the times in milliseconds.
const (
	nearTwin    = storage.Timestamp(2000) // how far apart the two can have begun
	stageTime   = 2 * nearTwin            // how long a stage is: what is near to one call is at most a stage apart
	betweenEnds = storage.Timestamp(250)  // how far apart the ends can be if no prompt proves anything
	maxReads    = 32                      // of how many candidates the record is read
)

// twin returns what another library has reported of the call, nil without that or if it is not sure which.
func (rs *reports) twin(of *report, k *keys) *report {
	others := 0
	for i := range k.twin {
		others += len(rs.byKey[k.twin[i]]) - len(rs.byKey[k.library[i]])
	}
	if k.twin[1] == "" || others == 0 {
		return nil
	}
	seen := make(map[storage.RecordKey]bool) // what the same library has reported, and the candidates
	for _, library := range k.library {
		for _, key := range rs.byKey[library] {
			seen[key] = true
		}
	}
	apart := func(key storage.RecordKey) storage.Timestamp { // as recordID writes the time
		return distance(storage.Timestamp(binary.BigEndian.Uint64(key.ID[:8])>>16), of.begun())
	}
	var candidates []storage.RecordKey
	for _, twin := range k.twin {
		for _, key := range rs.byKey[twin] {
			if apart(key) <= nearTwin && !seen[key] {
				candidates = append(candidates, key)
				seen[key] = true
			}
		}
	}
	slices.SortStableFunc(candidates, func(x, y storage.RecordKey) int { return cmp.Compare(apart(x), apart(y)) })
	if len(candidates) == 0 {
		return nil
	}
	mine := rs.statement(of)
	var likely []*report
	for _, key := range candidates[:min(len(candidates), maxReads)] {
		r := rs.load(key)
		if r == nil || !r.equal(of) {
			continue
		}
		switch theirs := rs.statement(r); {
		case !mine.fits(theirs):
		case mine.prompt.within(theirs.prompt) && theirs.prompt.within(mine.prompt):
			return r
		case distance(r.end(), of.end()) <= betweenEnds:
			likely = append(likely, r)
		}
	}
	if len(likely) == 0 || len(likely) > 1 && failed(of.Record) { // failures have no tokens that tell them apart
		return nil
	}
	return likely[0]
}

func distance(x, y storage.Timestamp) storage.Timestamp { return max(x-y, y-x) }

// equal reports whether reports of one model and usage agree in the rest, too, except in what was said and by whom.
func (r *report) equal(other *report) bool {
	return r.like(other) && (r.ResponseID == "" || other.ResponseID == "") &&
		(r.Status == other.Status || !r.Status.Valid || !other.Status.Valid) && (r.around(other) || other.around(r))
}

// around reports whether all the time of other is within that of r. What begun computes from cut milliseconds
// can be one too late.
func (r *report) around(other *report) bool {
	return r.begun() <= other.begun()+1 && other.end() <= r.end()
}

// statement is a report with the texts of its call.
type statement struct {
	*report
	inputs         map[string]string
	prompt, answer utterances
}

func (rs *reports) statement(r *report) *statement {
	content := rs.content(r)
	return &statement{r, content.Inputs, utterancesOf(content.Request), utterancesOf(content.Response)}
}

// fits reports whether two statements can be of one call: they contradict each other in no text, and one of
// them has nothing personal that the other has not. If each had something, and they were of two calls, a
// record would mix two people.
func (s *statement) fits(other *statement) bool {
	return !s.prompt.contradicts(other.prompt) && !s.answer.contradicts(other.answer) && !(s.adds(other) && other.adds(s))
}

// adds reports whether a statement has something personal that another has not.
func (s *statement) adds(to *statement) bool {
	differ := func(value, other string) bool { return value != "" && value != other }
	for name, value := range s.Properties {
		if differ(value, to.Properties[name]) && !slices.Contains(taskNames, name) {
			return true
		}
	}
	for name, value := range s.inputs {
		if differ(value, to.inputs[name]) {
			return true
		}
	}
	return differ(s.UserID, to.UserID) || differ(s.SessionID, to.SessionID) || differ(s.PromptID, to.PromptID) ||
		s.RequestBytes > 0 && !s.prompt.within(to.prompt) || s.ResponseBytes > 0 && !s.answer.within(to.answer)
}

// utterances are the texts of a body, those of the calls of tools included, by their letters and
// digits: libraries write white space and JSON each in their way.
type utterances map[string]bool

func utterancesOf(body storage.Body) utterances {
	u := make(utterances)
	add := func(text string) {
		letters := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, text)
		if text = cmp.Or(letters, strings.TrimSpace(text)); text != "" {
			u[text] = true
		}
	}
	v := gjson.ParseBytes(body.Data)
	eachOf(v.Get("input"), func(text gjson.Result) { add(text.Str) })
	for _, messages := range []gjson.Result{v.Get("messages"), v.Get("choices.#.message")} {
		eachOf(messages, func(m gjson.Result) {
			add(m.Get("content").Str)
			eachOf(m.Get("content"), func(part gjson.Result) { add(part.Get("text").Str) })
			eachOf(m.Get("tool_calls"), func(call gjson.Result) { add(call.Get("function.name").Str + call.Get("function.arguments").Str) })
		})
	}
	return u
}

// within reports whether there are utterances, and all are among others. Some libraries leave out instructions.
func (u utterances) within(others utterances) bool {
	for text := range u {
		if !others[text] {
			return false
		}
	}
	return len(u) > 0
}

// contradicts reports whether utterances and others are not of one call.
func (u utterances) contradicts(others utterances) bool {
	return len(u) > 0 && len(others) > 0 && !u.within(others) && !others.within(u)
}

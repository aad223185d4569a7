package translate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// commit opens the stream, and adds the items that the host ran before. It does so once.
func (a *Assembler) commit() {
	if a.sink != nil && !a.committed {
		a.committed = true
		a.emit(Event{Type: Began})
	}
	items := a.opts.Items
	a.opts.Items = nil
	a.opening += len(items)
	for _, item := range items {
		a.addWhole(item)
	}
}

func (a *Assembler) announce(o *Output) {
	a.commit()
	a.grow(itemSize)
	o.Index = len(a.items)
	o.ID = a.opts.ID(idPrefixes[o.Kind])
	a.items = append(a.items, o)
	a.emit(Event{Type: ItemOpened, Output: o})
}

var idPrefixes = [...]string{
	MessageOutput:    "msg_",
	ReasoningOutput:  "rs_",
	CallOutput:       "fc_",
	CustomCallOutput: "ctc_",
	ImageOutput:      "ig_",
	HostedOutput:     "item_",
	MCPOutput:        "mcp_",
	ApprovalOutput:   "mcpr_",
	SearchOutput:     "tsc_",
}

func randomID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// openCall opens a call whose name is complete, after the calls that the provider mentioned before.
func (a *Assembler) openCall(o *Output) {
	if o.Index != unopened {
		return
	}
	for _, c := range a.open {
		if c.Index == unopened && c.Name != "" {
			a.announceCall(c)
		}
		if c == o {
			return
		}
	}
}

func (a *Assembler) announceCall(o *Output) {
	o.resolve(a.request)
	if o.CallID == "" {
		o.CallID = a.opts.ID("call_")
	}
	o.parts = []OutputPart{{Kind: argumentsOf[o.Kind]}}
	a.announce(o)
	a.emit(Event{Type: PartOpened, Output: o, Part: &o.parts[0]})
	pending := o.pending
	o.pending = ""
	a.arguments(o, pending)
}

var argumentsOf = map[OutputKind]PartKind{
	CallOutput: ArgumentsPart, CustomCallOutput: InputPart, MCPOutput: MCPArgumentsPart, ApprovalOutput: ApprovalPart,
	SearchOutput: SearchPart,
}

func (a *Assembler) arguments(o *Output, s string) {
	if o.unwrap != nil {
		s = o.unwrap.push(s)
	}
	if o.Kind != CustomCallOutput && len(o.parts[0].Text) == 0 {
		if len(o.quoted) == 0 && noArguments(s) {
			return
		}
		if len(o.quoted) > 0 || strings.HasPrefix(strings.TrimSpace(s), `"`) {
			o.quoted = append(o.quoted, s...)
			return
		}
	}
	if s != "" {
		a.appendText(o, o.parts[0].Kind, s)
	}
}

func (a *Assembler) close(o *Output, status string) {
	if o.isCall() && o.Name != "" {
		a.openCall(o)
	}
	a.open = slices.DeleteFunc(a.open, func(other *Output) bool { return other == o })
	a.settle(o, status)
}

// closeAll closes all open items. Only the last item of an incomplete response is incomplete.
func (a *Assembler) closeAll(status string) {
	for _, o := range a.open {
		if o.Index == unopened && o.Name != "" {
			a.announceCall(o)
		}
	}
	for _, o := range a.open {
		s := statusCompleted
		if o.Index == len(a.items)-1 {
			s = status
		}
		a.settle(o, s)
	}
	a.open = a.open[:0]
}

// errNameless fails a response with a call that has no name.
var errNameless = plugins.Upstream("The provider called a tool without naming it.")

// nameless reports whether the item is a call that has said something, and not its name.
func (o *Output) nameless() bool {
	return o.Index == unopened && o.Name == "" && (o.CallID != "" || o.pending != "")
}

// settle closes the last part of an item, and then the item.
func (a *Assembler) settle(o *Output, status string) {
	if o.Index == unopened { // a call that never got a name
		if o.nameless() {
			a.Fail(errNameless)
		}
		return
	}
	if o.unwrap != nil {
		if rest := o.unwrap.rest(); rest != "" {
			a.appendText(o, InputPart, rest)
		}
	}
	if len(o.quoted) > 0 {
		a.appendText(o, o.parts[0].Kind, unquoted(string(o.quoted)))
		o.quoted = nil
	}
	if o.isCall() && o.Kind != CustomCallOutput && len(o.parts[0].Text) == 0 && status == statusCompleted {
		a.appendText(o, o.parts[0].Kind, "{}") // a call without arguments still has an object of them
	}
	if (o.Kind == CallOutput || o.Kind == SearchOutput) && !o.parts[0].isJSON() {
		a.truncated, status = true, statusIncomplete
	}
	a.closePart(o)
	if o.Kind == MCPOutput {
		a.rounds.calling = append(a.rounds.calling, o) // MCPResult ends it
		return
	}
	o.JSON = o.appendJSON(nil, status)
	o.parts = nil
	a.emit(Event{Type: ItemClosed, Output: o})
}

// Reason is why a model stopped. Plugins choose it by the provider's own finish reason; what it
// means to the client is decided here alone. The zero value is ReasonNone.
type Reason struct {
	status string // of the response. There is no requires_action: a turn that ends in calls is completed
	finish string // as the Responses API says it, or else as the provider does
	word   string // tells it from another reason that the Responses API says in the same way
}

var (
	// ReasonNone: the provider has not said that the model stopped.
	ReasonNone = Reason{}
	// ReasonStop: the model was done: end of turn, tool calls, or a stop sequence, where the
	// provider does not tell it from an end of turn.
	ReasonStop = Reason{status: statusCompleted, finish: statusCompleted}
	// ReasonStopSequence: the model wrote a stop sequence.
	ReasonStopSequence = Reason{statusCompleted, statusCompleted, "sequence"}
	// ReasonMaxOutputTokens: a limit of output tokens cut it off.
	ReasonMaxOutputTokens = Reason{status: statusIncomplete, finish: "max_output_tokens"}
	// ReasonContextFull: the context of the model was full.
	ReasonContextFull = Reason{statusIncomplete, "max_output_tokens", "context"}
	// ReasonContentFilter: the provider cut it off or blocked it for its content.
	ReasonContentFilter = Reason{status: statusIncomplete, finish: "content_filter"}
	// ReasonError: generation failed, and the provider says no more than that.
	ReasonError = Reason{status: statusFailed, finish: statusFailed}
	// ReasonInterrupted: generation failed. What came before stays, and is not complete.
	ReasonInterrupted = Reason{status: statusFailed, finish: statusFailed, word: own}
)

// own is the word of reasons that only the provider has a name for.
const own = "own"

// maxReason bounds a provider's name for a reason, in bytes.
const maxReason = 64

// otherReason stands for a name that clients are not told.
const otherReason = "other"

// Reasons are the reasons to stop by the provider's names for them.
type Reasons map[string]Reason

// Of returns the reason of a name. The answer keeps what it has if the name is new, and is not
// called complete. A new name that is no short text of printable ASCII is "other" to clients.
func (r Reasons) Of(name string) Reason {
	switch reason, ok := r[name]; {
	case !ok && (name == "" || len(name) > maxReason || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })):
		return Reason{statusIncomplete, otherReason, own}
	case !ok:
		return Reason{statusIncomplete, name, own}
	case reason == ReasonInterrupted:
		return Reason{statusFailed, name, own}
	default:
		return reason
	}
}

// Interrupts reports whether generation failed, as for ReasonInterrupted.
func (r Reason) Interrupts() bool { return r.status == statusFailed && r.word == own }

// Own returns the provider's name for a reason of an incomplete answer that the APIs of clients
// have no name for, "" for other reasons.
func (r Reason) Own() string {
	if r.word != own {
		return ""
	}
	return r.finish
}

// The statuses of a response and of its items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// Tokens are the counts of a response's usage: parts do not exceed their whole, as
// clients rely on, whatever the provider said, and what is unknown is 0.
type Tokens struct{ Input, CacheRead, CacheWrite, CacheWrite1h, Output, Reasoning int64 }

// Tokens returns the usage so far. It is not known where there was no report.
func (a *Assembler) Tokens() (t Tokens, known bool) {
	u := a.seen.Usage
	if a.rounds.begins > 0 {
		u.Add(a.rounds.usage)
	}
	return tokensOf(u), u.Input.Valid || u.Output.Valid
}

func tokensOf(u plugins.Usage) (t Tokens) {
	t.Input, t.Output = within(u.Input, maxTokens), within(u.Output, maxTokens)
	t.CacheRead = within(u.CacheRead, t.Input)
	t.CacheWrite = within(u.CacheWrite, t.Input-t.CacheRead)
	t.CacheWrite1h = within(u.CacheWrite1h, t.CacheWrite)
	t.Reasoning = within(u.Reasoning, t.Output)
	return t
}

// AppendUsage appends the usage so far as the Responses API has it: null if there was no
// report.
func (a *Assembler) AppendUsage(b []byte) []byte {
	t, known := a.Tokens()
	if !known {
		return append(b, "null"...)
	}
	return append(AppendCounts(b,
		Labelled{`{"input_tokens":`, t.Input},
		Labelled{`,"input_tokens_details":{"cached_tokens":`, t.CacheRead},
		Labelled{`,"cache_write_tokens":`, t.CacheWrite},
		Labelled{`},"output_tokens":`, t.Output},
		Labelled{`,"output_tokens_details":{"reasoning_tokens":`, t.Reasoning},
		Labelled{`},"total_tokens":`, t.Input + t.Output},
	), '}')
}

// Labelled is a count after the JSON that stands before it.
type Labelled struct {
	Label string
	N     int64
}

// AppendCounts appends counts with their labels.
func AppendCounts(b []byte, counts ...Labelled) []byte {
	for _, c := range counts {
		b = strconv.AppendInt(append(b, c.Label...), c.N, 10)
	}
	return b
}

// maxTokens is the largest count in a response: the sum of two is exact in
// JavaScript.
const maxTokens = (1<<53 - 1) / 2

// within is the count, or 0 if it is unknown, bounded by 0 and limit.
func within(c plugins.Count, limit int64) int64 { return min(max(c.N, 0), limit) }

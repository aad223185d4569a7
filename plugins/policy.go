package plugins

// Action is what becomes of a field that a provider has no equivalent for.
type Action uint8

const (
	// Reject refuses the request: the field changes what the answer means.
	Reject Action = iota
	// Warn leaves the field out and says so: it is a hint to quality.
	Warn
	// Ignore leaves the field out: it is a hint to accounting, or has no effect.
	Ignore
	// Translate is for a field that the plugin has an equivalent for.
	Translate
)

// Policy says by path what becomes of the fields of a request: top-level fields
// ("truncation"), fields of objects ("text.verbosity"), hosted tools by type
// ("tools.web_search"), content parts by type ("input.input_image") and values
// of include ("include.message.output_text.logprobs"). A field that stands in
// no Policy is unknown, and left out with a warning; a tool, part or value
// is refused.
type Policy map[string]Action

// DefaultPolicy is that of a provider that translates no field which can be
// left out; plugins begin with it and say what they translate.
var DefaultPolicy = Policy{}

// With is the policy with some entries replaced or added.
func (p Policy) With(other Policy) Policy { return p }

// Apply treats every field of the request as the policy says, in the order of
// the body. The error is an *Error.
func (p *Prompt) Apply(policy Policy) error { return nil }

// Drop treats one field that can't be honoured: an error for Reject, a warning
// "<field>: <done>" for Warn, which is an error too where the prompt is strict.
func (p *Prompt) Drop(a Action, field, done string) error { return nil }

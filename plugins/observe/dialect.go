package observe

import (
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Dialect is all that Weir knows of one wire format: which calls speak it, what their
// requests and responses say, and what is kept of them. Register makes it known.
//
// Bodies are JSON in any framing: one value, server-sent events, newline-delimited JSON, or
// AWS's event stream.
type Dialect struct {
	// Name is what records call it, lower-case. Required.
	Name plugins.Dialect
	// Operation is OpenTelemetry's gen_ai.operation.name of its calls. Default:
	// "chat".
	Operation string

	// Paths are the endings of the paths that speak the dialect, such as
	// "/v1/messages". One "{model}" in an ending matches the name of the model,
	// slashes included. If several endings match, of any dialects, the longest
	// counts.
	Paths []string
	// Providers are those whose paths these are. Default: all.
	Providers []string
	// Signs show the dialect in a response if no path does. Each is the path of a value, a
	// colon, and how the value's JSON begins, such as `object:"chat.completion"` or
	// `choices:[`.
	Signs []string

	// Polled are the endings of the paths by which a client asks later for the response,
	// such as "/responses/{id}".
	Polled []string

	// Request maps paths in a request's JSON to the fields of a RequestInfo.
	Request Table
	// OutputLimits are the fields of a request that limit the tokens of its output. The
	// first one that is set counts.
	OutputLimits []string
	// Streams is true if calls stream unless their request says no.
	Streams bool

	// Response maps paths in a response's JSON, or in each event of a stream, to the fields
	// of a ResponseInfo.
	Response Table
	// Whole is added to Response for a body that is one JSON value, unless the provider has a
	// variant: in events the same paths can mean something else.
	Whole Table
	// Object are signs of the dialect. A whole response has at least one of them. A 0
	// stands for any number.
	Object []string
	// Variants are added to Response if the provider of that name answers.
	Variants map[string]Table
	// Searchers are parts of the names of models that search the web for each answer. The
	// provider bills these searches, and does not state how many they were.
	Searchers []string
	// Headers are the response headers, as http.CanonicalHeaderKey writes them,
	// that say something beside the body.
	Headers map[string]Field
	// LastEvents are the types of the events that end a stream, beside [DONE].
	LastEvents []string
	// AfterFinish is the phase of a stream after its FinishReason. Default: plugins.Running,
	// for streams whose last event tells the end.
	AfterFinish plugins.Phase
	// Failures are the finish reasons that say that the provider failed to generate.
	Failures []string
	// Interruptions are the finish reasons that say the same, where the content before them is
	// an answer that is not complete. An answer without content has failed.
	Interruptions []string
	// NoOutput is true if the model makes no tokens, as for embeddings: a report of the input
	// is a report of the total.
	NoOutput bool
	// AudioOutput is true if all that the model makes is audio, which the report of usage does
	// not say.
	AudioOutput bool
	// Lines is true if a stream is newline-delimited JSON whatever its media type.
	Lines bool

	// TwoWay is how the dialect has responses in a two-way stream, nil if it has none.
	TwoWay *TwoWay

	// Transcript is what is kept of the bodies.
	Transcript transcript.Format
}

// dialect is a registered Dialect, made ready to be used.
type dialect struct {
	Dialect
	request  *node
	response *node
	whole    *node // of a body that is one JSON value
	variants map[string]*node
	paths    []path
	hasID    bool // its responses have ids
	finishes bool // its responses have finish reasons
}

// dialects are the registered ones. Only Register writes to it, before any read.
var dialects = make(map[plugins.Dialect]*dialect)

// endings are the path endings of all dialects, by lastWord.
var endings = make(map[string][]ending)

// ending is one that a dialect's paths have.
type ending struct {
	path
	of *dialect
}

// lastWord is what follows the last slash or colon.
func lastWord(path string) string { return path[strings.LastIndexAny(path, "/:")+1:] }

// Register makes a dialect known. It is meant for init functions, is not safe for concurrent
// use, and panics if the dialect has no name or the name of another.
func Register(d Dialect) {
	if d.Name == plugins.Unknown {
		panic("observe: a dialect needs a name")
	}
	if dialects[d.Name] != nil {
		panic("observe: the dialect " + string(d.Name) + " is registered twice")
	}
	r := newDialect(d)
	dialects[d.Name] = r
	for _, e := range r.paths {
		word := ""
		if strings.ContainsAny(e.after, "/:") {
			word = lastWord(e.after)
		}
		endings[word] = append(endings[word], ending{e, r})
	}
	for _, s := range d.Signs {
		unknown.addSign(s, r)
	}
}

// ends has what ends a stream of any dialect.
var ends = Table{"": sentinel}

func newDialect(d Dialect) *dialect {
	r := &dialect{Dialect: d, request: compile(d.Request), response: compile(d.Response, ends), whole: compile(d.Response, d.Whole, ends)}
	for provider, more := range d.Variants {
		if r.variants == nil {
			r.variants = make(map[string]*node)
		}
		r.variants[provider] = compile(d.Response, more, ends)
	}
	for _, ending := range d.Paths {
		r.paths = append(r.paths, newPath(ending))
	}
	for _, f := range d.Response {
		r.hasID = r.hasID || f == ResponseID
		r.finishes = r.finishes || f == FinishReason
	}
	return r
}

// responseOf returns the table of responses of a provider.
func (d *dialect) responseOf(provider string) *node {
	if v := d.variants[provider]; v != nil {
		return v
	}
	return d.response
}

// wholeOf is responseOf for a body that is one JSON value.
func (d *dialect) wholeOf(provider string) *node {
	if len(d.Whole) > 0 && d.variants[provider] == nil {
		return d.whole
	}
	return d.responseOf(provider)
}

// lookup returns the dialect of that name, or the unknown one.
func lookup(name plugins.Dialect) *dialect {
	if d := dialects[name]; d != nil {
		return d
	}
	return &unknown.dialect
}

// Transcript returns what is kept of bodies of dialect d.
func Transcript(d plugins.Dialect) *transcript.Format { return &lookup(d).Dialect.Transcript }

// Operation returns OpenTelemetry's gen_ai.operation.name of calls of dialect d.
func Operation(d plugins.Dialect) string {
	if operation := lookup(d).Dialect.Operation; operation != "" {
		return operation
	}
	return "chat"
}

// OutputLimits are the fields of requests of dialect d that limit the tokens of the output.
func OutputLimits(d plugins.Dialect) []string { return lookup(d).Dialect.OutputLimits }

// IsResponse reports whether body, which is valid JSON, is a whole response of dialect d. There are
// providers that answer errors, pages and nothing with the status 200.
func IsResponse(d plugins.Dialect, body []byte) bool {
	return slices.ContainsFunc(lookup(d).Object, func(sign string) bool {
		path, begin, _ := strings.Cut(sign, ":")
		v := gjson.Get(plugins.View(body), path)
		return v.Type == gjson.Number && begin == "0" || v.Exists() && strings.HasPrefix(v.Raw, begin)
	})
}

// Polled returns the dialect and the provider's id of the response that a GET of the path
// asks for, and is false if the path names none.
func Polled(provider, path string) (d plugins.Dialect, id string, ok bool) {
	for _, r := range dialects {
		if len(r.Providers) > 0 && !slices.Contains(r.Providers, provider) {
			continue
		}
		for _, ending := range r.Dialect.Polled {
			before, after, _ := strings.Cut(ending, "{id}")
			at := strings.LastIndex(path, before)
			if at < 0 {
				continue
			}
			if id, ok := strings.CutSuffix(path[at+len(before):], after); ok && id != "" && !strings.ContainsAny(id, "/:") {
				return r.Name, id, true
			}
		}
	}
	return plugins.Unknown, "", false
}

// tables joins tables, which agree on the paths that they have in common.
func tables(of ...Table) Table {
	joined := make(Table)
	for _, t := range of {
		for path, f := range t {
			joined[path] = f
		}
	}
	return joined
}

// path is an ending of paths: {before}{model}{after}, or after alone.
type path struct {
	before, after string
	named         bool // it has the model
}

func newPath(ending string) path {
	before, after, named := strings.Cut(ending, "{model}")
	if !named {
		return path{after: before}
	}
	return path{before, after, true}
}

// match reports whether p has the ending, how long it is without the model, and which model
// p names: what follows the last before.
func (e path) match(p string) (length int, model string, ok bool) {
	rest, ok := strings.CutSuffix(p, e.after)
	if !ok || !e.named {
		return len(e.after), "", ok
	}
	at := strings.LastIndex(rest, e.before)
	if at < 0 || at+len(e.before) == len(rest) {
		return 0, "", false
	}
	return len(e.before) + len(e.after), rest[at+len(e.before):], true
}

// longest returns the length of the longest ending of d that p has, and p's model.
func (d *dialect) longest(p string) (length int, model string) {
	for _, e := range d.paths {
		if n, m, ok := e.match(p); ok && n > length {
			length, model = n, m
		}
	}
	return length, model
}

// Endings returns the endings of the paths of all dialects, in which "{model}" stands for a
// model.
func Endings() (all []string) {
	for _, d := range dialects {
		all = append(all, d.Paths...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Detect returns the dialect of calls to path, which has no query. The provider, "" if
// unknown, decides between dialects with the same path.
func Detect(provider, path string) plugins.Dialect {
	path = strings.TrimSuffix(path, "/")
	found, best := plugins.Unknown, 0
	for _, word := range [...]string{lastWord(path), ""} { // the latter has endings without a slash
		for _, e := range endings[word] {
			own := slices.Contains(e.of.Providers, provider)
			if len(e.of.Providers) > 0 && !own {
				continue
			}
			n, _, ok := e.match(path)
			if ok && own {
				n += 1 << 16 // a provider's own meaning comes before everybody's
			}
			if ok && (n > best || n == best && e.of.Name < found) {
				found, best = e.of.Name, n
			}
		}
	}
	return found
}

// PathModel returns the model that the path of a call names, "" if the body names it:
// Gemini's and Vertex's models/{model}:{method}, Bedrock's
// model/{model}/{operation} with its ids, profiles and ARNs decoded, Azure's
// deployments/{deployment}.
func PathModel(d plugins.Dialect, path string) string {
	_, model := lookup(d).longest(strings.TrimSuffix(path, "/"))
	return unescapePath(model)
}

// PathPrefix returns what stands before the part of a path that tells the dialect, and the model if it
// names one.
func PathPrefix(d plugins.Dialect, path string) string {
	path = strings.TrimSuffix(path, "/")
	n, model := lookup(d).longest(path)
	return path[:len(path)-n-len(model)]
}

// unescapePath decodes a path segment, which the caller may have decoded before.
func unescapePath(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
}

package gemini

import (
	"encoding/json"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// policy says what generateContent has equivalents for.
var policy = translate.DefaultPolicy.With(translate.WebSearch).Translating(
	"frequency_penalty", "presence_penalty", "reasoning.effort", "reasoning.summary", "seed",
	"service_tier", "top_k", "top_logprobs",
	"input.input_image", "input.input_file", "input.input_audio",
	"tools.code_interpreter",
	"include.code_interpreter_call.outputs", "include.message.output_text.logprobs",
	"include.web_search_call.action.sources",
)

// request is the body of generateContent.
type request struct {
	SystemInstruction *content         `json:"systemInstruction,omitempty"`
	Contents          []content        `json:"contents"`
	Tools             []tool           `json:"tools,omitempty"`
	ToolConfig        *toolConfig      `json:"toolConfig,omitempty"`
	GenerationConfig  generationConfig `json:"generationConfig,omitzero"`
	ServiceTier       string           `json:"serviceTier,omitempty"`
	Labels            json.RawMessage  `json:"labels,omitempty"`

	request *translate.Request
	model   *model
	vertex  bool
	tier    string // asked for
}

type generationConfig struct {
	MaxOutputTokens    int64           `json:"maxOutputTokens,omitempty"`
	Temperature        *float64        `json:"temperature,omitempty"`
	TopP               *float64        `json:"topP,omitempty"`
	TopK               json.RawMessage `json:"topK,omitempty"`
	Seed               json.RawMessage `json:"seed,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	PresencePenalty    *float64        `json:"presencePenalty,omitempty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty,omitempty"`
	ResponseLogprobs   bool            `json:"responseLogprobs,omitempty"`
	Logprobs           int64           `json:"logprobs,omitempty"`
	ResponseMIMEType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	ThinkingConfig     *thinkingConfig `json:"thinkingConfig,omitempty"`
}

// newRequest translates p. If the client is at fault, the error is a *plugins.Error.
func newRequest(p *translate.Request, t translate.Target, vertex bool) (*request, error) {
	if err := p.Apply(policy); err != nil {
		return nil, err
	}
	if err := p.FitCalls(translate.CallRules{Letter: true}); err != nil {
		return nil, err
	}
	r := &request{request: p, model: modelOf(t), vertex: vertex}
	for _, set := range []func() error{
		r.setMessages, r.setTools, r.setFormat, r.setReasoning, r.setSampling, r.setServiceTier,
	} {
		if err := set(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// maxStops is how many stop sequences a request may have
// (https://ai.google.dev/api/generate-content#generationconfig).
const maxStops = 5

func (r *request) setSampling() error {
	p, g := r.request, &r.GenerationConfig
	if !r.model.Temperature && p.Temperature != nil && *p.Temperature != 1 {
		if err := r.request.DropWithWarning("temperature", translate.ModelRefuses); err != nil {
			return err
		}
	}
	g.MaxOutputTokens = p.MaxOutputTokens.N
	g.Temperature, g.TopP = p.Temperature, p.TopP
	g.PresencePenalty, g.FrequencyPenalty = p.PresencePenalty, p.FrequencyPenalty
	g.TopK, g.Seed = p.Field("top_k"), p.Field("seed")
	var err error
	if g.StopSequences, err = p.FitStop(maxStops, nil); err != nil {
		return err
	}
	g.Logprobs = p.TopLogprobs.N
	g.ResponseLogprobs = g.Logprobs > 0 || slices.Contains(p.Include, "message.output_text.logprobs")
	return nil
}

// setFormat sets the form of the text. Models before Gemini 3 take no form beside tools: they answer by a call.
func (r *request) setFormat() error {
	f := r.request.Format
	if f.Type != "json_object" && f.Type != "json_schema" {
		return nil
	}
	if len(r.Tools) > 0 && !r.model.hasLevels() {
		return r.setAnswerTool()
	}
	r.GenerationConfig.ResponseMIMEType = "application/json"
	var err error
	r.GenerationConfig.ResponseJSONSchema, err = adaptSchema(r.request, "text.format.schema", f.Schema)
	return err
}

func (r *request) setAnswerTool() error {
	p, last := r.request, &r.Tools[len(r.Tools)-1]
	if p.Format.Type != "json_schema" || len(last.FunctionDeclarations) == 0 {
		return plugins.Unsupported("text.format", "The model cannot answer in this format where it has these tools.")
	}
	t, err := p.AnswerTool()
	if t == nil {
		return err
	}
	if p.ToolChoice.Mode == "none" {
		last.FunctionDeclarations = nil
	}
	f, err := r.newFunction(t)
	if err != nil {
		return err
	}
	last.FunctionDeclarations = append(last.FunctionDeclarations, f)
	config := &functionCallingConfig{Mode: "ANY"}
	if p.ToolChoice.Allowed != nil {
		config.AllowedFunctionNames = append(allowed(p.ToolChoice, last.FunctionDeclarations), t.Name)
	}
	r.ToolConfig = &toolConfig{FunctionCallingConfig: config}
	return nil
}

// setServiceTier asks for a tier. Vertex AI takes it in a header.
func (r *request) setServiceTier() error {
	switch tier := r.request.ServiceTier; tier {
	case "", "auto", "default":
		return nil
	case "flex", "priority":
		r.tier = tier
	default:
		return r.request.DropWithWarning("service_tier", translate.NotSupported)
	}
	if !r.vertex {
		r.ServiceTier = r.tier
	}
	return nil
}

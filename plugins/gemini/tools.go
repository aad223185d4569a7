package gemini

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

type tool struct {
	GoogleSearch         *googleSearch         `json:"googleSearch,omitempty"`
	CodeExecution        *struct{}             `json:"codeExecution,omitempty"`
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations,omitempty"`
}

type googleSearch struct {
	// ExcludeDomains is Vertex AI's alone.
	ExcludeDomains json.RawMessage `json:"excludeDomains,omitempty"`
}

type functionDeclaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	FunctionCallingConfig *functionCallingConfig `json:"functionCallingConfig,omitempty"`
	// IncludeServerSideToolInvocations is required where a request has both hosted
	// tools and functions.
	IncludeServerSideToolInvocations bool `json:"includeServerSideToolInvocations,omitempty"`
}

type functionCallingConfig struct {
	Mode                 string   `json:"mode"`
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

func (r *request) setTools() error {
	c := r.request.ToolChoice
	isFunction := func(t translate.Tool) bool { return !t.Hosted() }
	if (r.vertex || !r.model.hasLevels()) && slices.ContainsFunc(r.request.Tools, isFunction) { // which have either
		if err := r.request.DropTools(func(*translate.Tool) bool { return true }); err != nil {
			return err
		}
	}
	var functions []functionDeclaration
	hosted, strict := false, false
	for i := range r.request.Tools {
		t := &r.request.Tools[i]
		if !t.Hosted() {
			f, err := r.newFunction(t)
			if err != nil {
				return err
			}
			functions = append(functions, f)
			strict = strict || t.IsStrict()
			continue
		}
		if c.Mode == "none" || !c.Allows(t) {
			continue // the choice is one of functions
		}
		if err := r.addHosted(t); err != nil {
			return err
		}
		hosted = true
	}
	if hosted && len(functions) > 0 {
		r.ToolConfig = &toolConfig{IncludeServerSideToolInvocations: true}
	}
	if len(functions) > 0 {
		r.Tools = append(r.Tools, tool{FunctionDeclarations: functions})
	}
	return r.setToolChoice(functions, strict)
}

// setToolChoice chooses between functions. The model alone chooses hosted tools.
func (r *request) setToolChoice(functions []functionDeclaration, strict bool) error {
	c := r.request.ToolChoice
	config := functionCallingConfig{AllowedFunctionNames: allowed(c, functions)}
	switch {
	case c.Mode == "required" && c.Type != "" && c.Type != "function" && c.Type != "custom":
		return plugins.Unsupported("tool_choice", "The provider cannot be made to use the tool '%s': use 'auto'.", c.Type)
	case c.Mode == "required" && (len(functions) == 0 || c.Allowed != nil && len(config.AllowedFunctionNames) == 0):
		return plugins.Invalid("tool_choice", "The tool choice requires a call, but there is no function to call.")
	case len(functions) == 0:
		return nil
	case c.Mode == "none" || c.Allowed != nil && len(config.AllowedFunctionNames) == 0:
		config.Mode = "NONE"
	case c.Mode == "required":
		config.Mode = "ANY"
	case strict || c.Allowed != nil: // the mode that holds calls to their schemas, and takes names
		config.Mode = "VALIDATED"
	case c.Mode == "auto":
		config.Mode = "AUTO"
	default:
		return nil
	}
	if r.ToolConfig == nil {
		r.ToolConfig = new(toolConfig)
	}
	r.ToolConfig.FunctionCallingConfig = &config
	return nil
}

// allowed are the names of the functions that the choice allows, nil for all.
func allowed(c translate.ToolChoice, functions []functionDeclaration) []string {
	if c.Name != "" {
		return []string{c.Name}
	}
	var names []string
	for _, f := range functions {
		if slices.Contains(c.Allowed, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

func (r *request) addHosted(t *translate.Tool) error {
	if t.Type == "code_interpreter" {
		r.Tools = append(r.Tools, tool{CodeExecution: new(struct{})})
		return nil
	}
	search := googleSearch{ExcludeDomains: t.Field("filters.blocked_domains")}
	if t.Field("filters.allowed_domains") != nil {
		return plugins.Unsupported(t.Param+".filters.allowed_domains", "The provider cannot confine its search to domains.")
	}
	if search.ExcludeDomains != nil && !r.vertex {
		return plugins.Unsupported(t.Param+".filters.blocked_domains", "The provider cannot keep domains out of its search.")
	}
	r.Tools = append(r.Tools, tool{GoogleSearch: &search})
	return r.request.DropHints(t, "user_location", "search_context_size")
}

func (r *request) newFunction(t *translate.Tool) (f functionDeclaration, err error) {
	f.Name = t.Name
	var schema json.RawMessage
	f.Description, schema = t.AsFunction()
	if t.Type != "custom" && len(gjson.ParseBytes(t.Parameters).Map()) == 0 {
		return f, nil // the provider refuses an empty schema
	}
	f.ParametersJSONSchema, err = adaptSchema(r.request, t.Param+".parameters", schema)
	return f, err
}

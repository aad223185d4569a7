package translate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Validate checks the values of the documented fields of the body of
// POST /v1/responses, beyond what ParseRequest does: those of the enumerations.
// Any other key is accepted. Errors are *Error and name the field.
func Validate(body []byte) error { return check(body, true) }

// CheckObject checks that the body of a request is a JSON object in UTF-8.
func CheckObject(body []byte) error {
	if !utf8.Valid(body) { // it would be repeated into a stream that must be UTF-8
		return plugins.Invalid("", "The body of the request is not valid UTF-8.")
	}
	if !plugins.ValidJSON(body) {
		return plugins.Invalid("", "The body of the request is not valid JSON.")
	}
	if !gjson.Parse(plugins.View(body)).IsObject() {
		return plugins.Invalid("", "The body of the request is not a JSON object.")
	}
	return nil
}

// check checks the types of the documented fields, and their values.
func check(body []byte, enums bool) error {
	if err := CheckObject(body); err != nil {
		return err
	}
	var err error
	gjson.Parse(plugins.View(body)).ForEach(func(key, v gjson.Result) bool {
		if f := fields[key.Str]; f.types != nil && v.Type != gjson.Null {
			err = f.check(key.Str, v, enums)
		}
		return err == nil
	})
	return err
}

// field is what is documented of a field.
type field struct {
	types  []jsonType
	values []string // of a string, all that are allowed
	min    int64    // of an integer
	max    int64    // of an integer, 0 for maxInteger
	// at returns where a Request has the value, nil for a field that is read otherwise.
	at func(*Request) any
}

func one(t jsonType, at func(*Request) any) field { return field{types: []jsonType{t}, at: at} }

// maxInteger is the greatest integer that all readers of JSON keep exactly (RFC
// 8259, section 6).
const maxInteger = 1<<53 - 1

type jsonType string

const (
	aString   jsonType = "a string"
	aNumber   jsonType = "a number"
	anInteger jsonType = "an integer"
	aBoolean  jsonType = "a boolean"
	anObject  jsonType = "an object"
	anArray   jsonType = "an array"
	aNull     jsonType = "null"
)

// fields are the fields of the interface, and those of OpenAI's that plugins read.
var fields = map[string]field{
	"input":          {types: []jsonType{aString, anArray}},
	"reasoning":      {types: []jsonType{anObject}},
	"stream_options": {types: []jsonType{anObject}},
	"text":           {types: []jsonType{anObject}},
	"tool_choice":    {types: []jsonType{aString, anObject}, values: toolModes},
	"tools":          {types: []jsonType{anArray}},

	"include":             one(anArray, func(p *Request) any { return &p.Include }),
	"instructions":        one(aString, func(p *Request) any { return &p.Instructions }),
	"frequency_penalty":   one(aNumber, func(p *Request) any { return &p.FrequencyPenalty }),
	"max_output_tokens":   one(anInteger, func(p *Request) any { return &p.MaxOutputTokens }),
	"metadata":            one(anObject, func(p *Request) any { return &p.Metadata }),
	"model":               one(aString, func(p *Request) any { return &p.Model }),
	"parallel_tool_calls": one(aBoolean, func(p *Request) any { return &p.ParallelToolCalls }),
	"presence_penalty":    one(aNumber, func(p *Request) any { return &p.PresencePenalty }),
	"prompt_cache_key":    one(aString, func(p *Request) any { return &p.PromptCacheKey }),
	"safety_identifier":   one(aString, func(p *Request) any { return &p.SafetyIdentifier }),
	"stream":              one(aBoolean, func(p *Request) any { return &p.Stream }),
	"temperature":         one(aNumber, func(p *Request) any { return &p.Temperature }),
	"top_p":               one(aNumber, func(p *Request) any { return &p.TopP }),
	"user":                one(aString, func(p *Request) any { return &p.User }),

	"max_tool_calls": {types: []jsonType{anInteger}, min: 1, at: func(p *Request) any { return &p.MaxToolCalls }},
	"top_logprobs":   {types: []jsonType{anInteger}, max: 20, at: func(p *Request) any { return &p.TopLogprobs }},
	"truncation": {
		types: []jsonType{aString}, values: []string{"auto", "disabled"},
		at: func(p *Request) any { return &p.Truncation },
	},
	"service_tier": {
		types: []jsonType{aString}, values: []string{"auto", "default", "flex", "scale", "priority"},
		at: func(p *Request) any { return &p.ServiceTier },
	},

	// Below others. Their types are not checked.
	"reasoning.effort":  {at: func(p *Request) any { return &p.Reasoning.Effort }},
	"reasoning.summary": {at: func(p *Request) any { return &p.Reasoning.Summary }},
	"text.verbosity":    {at: func(p *Request) any { return &p.Verbosity }},
}

var toolModes = []string{"none", "auto", "required"}

func (f field) check(param string, v gjson.Result, enums bool) error {
	if !f.allows(typeOf(v)) {
		return invalidType(param, f.types, v)
	}
	if enums && len(f.values) > 0 && v.Type == gjson.String && !slices.Contains(f.values, v.Str) {
		return InvalidValue(param, v.Str, f.values)
	}
	if math.IsInf(v.Num, 0) {
		return plugins.Invalid(param, "Invalid '%s': the number is out of range.", param)
	}
	if typeOf(v) == anInteger && slices.Contains(f.types, anInteger) {
		if v.Num < float64(f.min) {
			return plugins.Invalid(param, "Invalid '%s': integer below minimum value. Expected a value >= %d, but got %s instead.",
				param, f.min, v.Raw).WithCode("integer_below_min_value")
		}
		if limit := cmp.Or(f.max, maxInteger); v.Num > float64(limit) {
			return plugins.Invalid(param, "Invalid '%s': integer above maximum value. Expected a value <= %d, but got %s instead.",
				param, limit, v.Raw).WithCode("integer_above_max_value")
		}
	}
	element := map[string]jsonType{"tools": anObject, "include": aString}[param]
	if element == "" {
		return nil
	}
	for i, e := range v.Array() {
		if typeOf(e) != element {
			return invalidType(indexPath(param, i), []jsonType{element}, e)
		}
	}
	return nil
}

func (f field) allows(t jsonType) bool {
	return slices.Contains(f.types, t) || t == anInteger && slices.Contains(f.types, aNumber)
}

func typeOf(v gjson.Result) jsonType {
	switch {
	case v.Type == gjson.String:
		return aString
	case v.Type == gjson.Number && v.Num == math.Trunc(v.Num):
		return anInteger
	case v.Type == gjson.Number:
		return aNumber
	case v.IsBool():
		return aBoolean
	case v.IsObject():
		return anObject
	case v.IsArray():
		return anArray
	}
	return aNull
}

func invalidType(param string, want []jsonType, got gjson.Result) *plugins.Error {
	words := make([]string, len(want))
	for i, t := range want {
		words[i] = string(t)
	}
	return plugins.Invalid(param, "Invalid type for '%s': expected %s, but got %s instead.",
		param, strings.Join(words, " or "), typeOf(got)).WithCode("invalid_type")
}

// InvalidValue returns the 400 for a string that is not one of want.
func InvalidValue(param, got string, want []string) *plugins.Error {
	return plugins.Invalid(param, "Invalid value: '%s'. Supported values are: '%s'.",
		got, strings.Join(want, "', '")).WithCode("invalid_value")
}

// Missing returns the 400 for a field that must be there.
func Missing(param string) *plugins.Error {
	return plugins.Invalid(param, "Missing required parameter: '%s'.", param).WithCode("missing_required_parameter")
}

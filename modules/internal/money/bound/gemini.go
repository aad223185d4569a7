package bound

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// canonicalName returns one spelling of a field's name. Google accepts two, such as maxOutputTokens and
// max_output_tokens (https://protobuf.dev/programming-guides/json/).
func canonicalName(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// readGemini reads a field of a request of Gemini and Vertex
// (https://ai.google.dev/api/generate-content), and reports whether the field is known.
func (d *Demand) readGemini(name string, v gjson.Result) bool {
	switch canonicalName(name) {
	case "contents":
		d.readConversation(v)
	case "systeminstruction":
		d.readContent(v, 0)
	case "tools":
		v.ForEach(func(_, tool gjson.Result) bool {
			tool.ForEach(func(key, _ gjson.Result) bool {
				d.readGeminiTool(canonicalName(key.Str))
				return true
			})
			return true
		})
	case "cachedcontent":
		d.Unbounded = true
	case "generationconfig", "labels", "safetysettings", "toolconfig":
	default:
		return false
	}
	return true
}

// readGeminiTool reads one kind of tool. Google runs all of them but function declarations, and charges
// for searches.
func (d *Demand) readGeminiTool(kind string) {
	if kind == "functiondeclarations" { // the client runs them
		return
	}
	d.Hosted = true
	if strings.Contains(kind, "search") || strings.Contains(kind, "maps") {
		d.Searches = true
	}
}

// readGeminiPart reads a field of a message part, and reports whether the field is known. An unknown one
// may have further content.
func (d *Demand) readGeminiPart(name string, v gjson.Result) bool {
	switch canonicalName(name) {
	case "inlinedata":
		d.readInlineData(v)
	case "filedata", "fileuri":
		d.Unbounded = d.Unbounded || v.Type != gjson.Null
	case "functioncall":
	case "functionresponse": // its text is the client's own, whatever its fields are called
		v.ForEach(func(key, parts gjson.Result) bool {
			if canonicalName(key.Str) == "parts" {
				d.readContent(parts, 1)
			}
			return true
		})
	default:
		return false
	}
	return true
}

// readInlineData reads a picture, audio or a file in base64. A file that is no text makes the input
// unbounded: its length says little about its tokens. So does a field that occurs twice.
func (d *Demand) readInlineData(v gjson.Result) {
	var mimeTypes, data []gjson.Result
	v.ForEach(func(key, field gjson.Result) bool {
		switch canonicalName(key.Str) {
		case "mimetype":
			mimeTypes = append(mimeTypes, field)
		case "data":
			data = append(data, field)
		}
		return true
	})
	if len(mimeTypes) != 1 || len(data) != 1 {
		d.Unbounded = true
		return
	}
	switch kind := mimeTypes[0].Str; {
	case strings.HasPrefix(kind, "image/"):
		d.Pictures++
	case strings.HasPrefix(kind, "audio/"):
		d.readAudio(data[0])
	case strings.HasPrefix(kind, "text/"):
		return
	default:
		d.Unbounded = true
	}
	d.inline += int64(len(data[0].Raw))
}

// geminiOutputLimit returns the limit of output tokens, or 0 if there is none. It includes thoughts
// (https://github.com/googleapis/python-genai/issues/2062). If the limit is set twice, the highest counts.
func (r Request) geminiOutputLimit() (limit int64) {
	r.geminiConfigs("maxoutputtokens", func(values []gjson.Result) {
		if len(values) == 0 {
			limit = math.MaxInt64
		}
		for _, v := range values {
			if v.Type != gjson.Number || v.Num < 1 || v.Num > math.MaxInt32 {
				limit = math.MaxInt64
			}
			limit = max(limit, v.Int())
		}
	})
	if limit == math.MaxInt64 {
		return 0
	}
	return limit
}

// geminiConfigs calls do for each generation configuration of a request: a request can have one in each
// spelling. do gets the values of the field with this canonical name; there are two if it occurs twice.
func (r Request) geminiConfigs(name string, do func(values []gjson.Result)) {
	for _, field := range []string{"generationConfig", "generation_config"} {
		config := r.Get(field)
		if !config.Exists() {
			continue
		}
		var values []gjson.Result
		config.ForEach(func(key, v gjson.Result) bool {
			if canonicalName(key.Str) == name {
				values = append(values, v)
			}
			return true
		})
		do(values)
	}
}

package bound

import (
	"math"
	"strings"

	"github.com/tidwall/gjson"
)

// plain is a name of a field at Google, which takes each in two spellings:
// https://protobuf.dev/programming-guides/json/
func plain(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// readGemini reads a field of a request of Gemini and Vertex
// (https://ai.google.dev/api/generate-content), and reports whether the field is known.
func (d *Demand) readGemini(name string, v gjson.Result) bool {
	switch plain(name) {
	case "contents":
		d.readConversation(v)
	case "systeminstruction":
		d.readContent(v, 0)
	case "tools":
		v.ForEach(func(_, tool gjson.Result) bool {
			tool.ForEach(func(key, _ gjson.Result) bool {
				hosted := plain(key.Str)
				if hosted == "functiondeclarations" {
					return true
				}
				d.Hosted = true
				d.Searches = d.Searches || strings.Contains(hosted, "search") || strings.Contains(hosted, "maps")
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

// readGeminiPart reads a field of a part of a conversation at Google, and reports whether the
// field has no content beside what was read.
func (d *Demand) readGeminiPart(name string, v gjson.Result) bool {
	switch plain(name) {
	case "inlinedata":
		d.readInlineData(v)
	case "filedata", "fileuri":
		d.Unbounded = d.Unbounded || v.Type != gjson.Null
	case "functioncall":
	case "functionresponse": // its text is the client's own, whatever its fields are called
		v.ForEach(func(key, parts gjson.Result) bool {
			if plain(key.Str) == "parts" {
				d.readContent(parts, 1)
			}
			return true
		})
	default:
		return false
	}
	return true
}

// readInlineData reads a picture, audio, or a file whose length says little about its tokens.
func (d *Demand) readInlineData(v gjson.Result) {
	var kind string
	kinds := 0
	var data []gjson.Result
	v.ForEach(func(key, field gjson.Result) bool {
		switch plain(key.Str) {
		case "mimetype":
			kind, kinds = field.Str, kinds+1
		case "data":
			data = append(data, field)
		}
		return true
	})
	if kinds != 1 || len(data) != 1 {
		d.Unbounded = true
		return
	}
	switch {
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

// geminiOutputLimit returns the limit of output tokens in the configuration of a request, thoughts
// included (https://github.com/googleapis/python-genai/issues/2062); 0 for none. Of a field
// that stands twice the highest counts.
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

// geminiConfigs calls do for each configuration of a request, of which each spelling may have one,
// with the values of a field by its plain name.
func (r Request) geminiConfigs(name string, do func(values []gjson.Result)) {
	for _, field := range []string{"generationConfig", "generation_config"} {
		config := r.Get(field)
		if !config.Exists() {
			continue
		}
		var values []gjson.Result
		config.ForEach(func(key, v gjson.Result) bool {
			if plain(key.Str) == name {
				values = append(values, v)
			}
			return true
		})
		do(values)
	}
}

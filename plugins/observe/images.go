package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Images is OpenAI's making and editing of images, as JSON or as a stream. Models
// that are charged by the image report no tokens. OpenRouter reports those of Chat
// Completions.
// https://platform.openai.com/docs/api-reference/images
func init() {
	Register(Dialect{
		Name:      plugins.Images,
		Operation: "generate_content",
		Paths: []string{
			"/images/generations", "/deployments/{model}/images/generations",
			"/images/edits", "/deployments/{model}/images/edits",
			"/images/variations",
		},
		Signs: []string{"data.#.b64_json:", `type:"image_generation.partial_image"`, `type:"image_edit.partial_image"`,
			`type:"image_generation.completed"`, `type:"image_edit.completed"`},
		Request: tables(modelRequest, Table{"image": Media, "images.#": Media}),
		Response: tables(chatUsage.Under("usage"), responsesUsage.Under("usage"), errorFields.Under("error"), Table{
			"id":       ResponseID,
			"model":    Model,
			"type":     EventType,
			"b64_json": Content, // of an event
			"data.#":   Image,
		}),
		Object:     []string{"data:["},
		Variants:   gatewayCosts,
		LastEvents: []string{"image_generation.completed", "image_edit.completed"},
		Transcript: transcript.Format{Input: []string{"prompt"}, Output: []string{"data.#.revised_prompt"}},
	})
}

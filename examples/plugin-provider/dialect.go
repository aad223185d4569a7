package acme

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
)

// Acme's own clients call its API through llm_log and llm_proxy, who read what
// passes: which host is Acme's, and what its JSON says.
func init() {
	plugins.RegisterVendor(plugins.Vendor{Name: "acme", BaseURL: "https://api.acme.example", KeyEnv: "ACME_API_KEY"})

	observe.Register(observe.Dialect{
		Name:      "acme_generate",
		Paths:     []string{"/generate"},
		Providers: []string{"acme"}, // others have a /generate too
		Request: observe.Table{
			"model":  observe.Model,
			"stream": observe.Stream,
		},
		Response: observe.Table{
			"id":            observe.ResponseID,
			"model":         observe.Model,
			"text":          observe.Content,
			"calls.#":       observe.Content,
			"stopped":       observe.FinishReason,
			"tokens.in":     observe.Input,
			"tokens.cached": observe.CacheRead,
			"tokens.out":    observe.Output,
			"error":         observe.Error,
			"error.code":    observe.ErrorCode,
		},
		AfterFinish: plugins.Ended, // no event follows the one with the reason
		Transcript: transcript.Format{
			Chunk: transcript.Object(transcript.Fields{
				"text":  transcript.Join,
				"calls": transcript.List(transcript.Fields{"input": transcript.Join}),
			}),
			Input:   []string{"turns"},
			Output:  []string{"text"},
			Message: "text",
			Finish:  "stopped",
		},
	})
}

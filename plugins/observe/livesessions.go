package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// LiveSessions is OpenAI's Live, a two-way stream of events over a WebSocket. All of a session is one
// response, which is billed by its length: each report of usage has that of the session so far. What
// the session delegates to Responses and Decisions is billed in tokens, and reported in events of its
// own. A session whose sound does not pass here (WebRTC, SIP) reports nothing to the POST that creates it.
// https://developers.openai.com/api/reference/resources/live
func init() {
	Register(Dialect{
		Name:    plugins.LiveSessions,
		Paths:   []string{"/live/sessions"},
		Signs:   []string{`type:"session.started"`},
		Request: Table{"session.model": Model},
		Response: tables(errorFields.Under("error"), Table{
			"type":          EventType,
			"session.id":    ResponseID,
			"session.model": Model,
			"reason":        FinishReason,
			"usage.seconds": AudioSeconds,
		}),
		LastEvents: []string{"session.closed"},
		TwoWay: &TwoWay{
			Conversation: true,
			Media:        []string{"session.input_audio.append", "session.output_audio.delta"},
			Speaks:       []string{"session.id"},
			Delegated: map[string]Delegated{
				"response.event": {"event", plugins.Responses},
				"decision.event": {"event.decision", plugins.Decisions},
			},
		},
		Transcript: transcript.Format{Input: []string{"#.session.instructions", "#.session.input", "#.content"}},
	})
}

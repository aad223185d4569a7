package compat

import (
	"context"
	"os/exec"
	"testing"

	"github.com/tidwall/gjson"
)

// TestStoredResponses goes on from a response of a model that is translated, and deletes
// it, keeps a conversation, has responses generated in the background, compacts and counts,
// with the official clients.
func TestStoredResponses(t *testing.T) {
	if !*withClients {
		t.Skip("the clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	w := startKinds(t)
	for _, command := range [][]string{{"node", "node/state.js"}, {"python/.venv/bin/python", "python/state.py"}} {
		t.Run(command[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			out, err := exec.CommandContext(ctx, command[0], command[1], w.url+"/v1", "anthropic/claude-sonnet-4-5").CombinedOutput()
			seen := gjson.ParseBytes(out)
			if err != nil || !seen.Get("kept").Bool() || !seen.Get("previous").Bool() ||
				seen.Get("input.#").Int() != 1 || seen.Get("input.0").Str != "second" ||
				seen.Get("conversation").Raw != `["zeroth","fourth"]` && seen.Get("conversation").Raw != `["zeroth", "fourth"]` ||
				seen.Get("metadata.c").Str != "d" || !seen.Get("conversationDeleted").Bool() ||
				!seen.Get("background").Bool() || seen.Get("status").Str != "completed" || seen.Get("cancelled").Str != "completed" ||
				seen.Get("resumed.0").Int() != 1 || seen.Get("resumed.1").Str != "response.completed" ||
				seen.Get("streamed.0").Str != "response.created" || seen.Get("streamed.1").Str != "response.completed" ||
				seen.Get("compaction.#").Int() != 3 || seen.Get("compaction.1").Str != "compaction" || seen.Get("compaction.2").Str != "completed" ||
				!seen.Get("counted").Bool() ||
				seen.Get("deleted").Str != "not_found" || seen.Get("broken").Str != "previous_response_not_found" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

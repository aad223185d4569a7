package bound

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// Each field of the list is decided. Whoever adds the fields of new types decides.
func TestFieldsAreDecided(t *testing.T) {
	for line := range strings.Lines(fieldList) {
		column := strings.Fields(line)
		if len(column) == 0 || column[0] == "#" {
			continue
		}
		if len(column) != 3 || meanings[column[1]] == unlisted {
			t.Errorf("%q is not decided", strings.TrimSpace(line))
		}
	}
	if len(apis) < 5 {
		t.Errorf("the list has the APIs %v", apis)
	}
}

// Each field that names what a provider keeps is found: in the request, in its tools and options,
// and in the conversation.
func TestStateOfEachListedField(t *testing.T) {
	for d, fields := range apis {
		for _, name := range fields.ids {
			value := `"x_1"`
			if fields.fields[name] == named || name == "conversation" || name == "prompt" {
				value = `{"id":"x_1"}`
			}
			for _, body := range []string{
				`{"F":V}`, `{"option":{"F":V}}`, `{"tools":[{"type":"t","F":V}]}`, `{"extra_body":{"F":V}}`,
				`{"messages":[{"content":[{"F":V}]}]}`, `{"contents":[{"parts":[{"F":V}]}]}`,
			} {
				body = strings.NewReplacer("F", name, "V", value).Replace(body)
				object, valid := plugins.ParseObject([]byte(body))
				if found := StateOf(d, object); !valid || !slices.ContainsFunc(found.IDs, func(id StateID) bool { return id.ID == "x_1" }) {
					t.Errorf("%s: nothing is found in %s", d, body)
				}
			}
		}
	}
}

// A field in no list that is called an id names what the provider keeps, unless the client has
// made up its name.
func TestStateOfUnlistedFields(t *testing.T) {
	for body, want := range map[string]string{
		`{"memory_store_id":"m_1"}`:                                                         "m_1",
		`{"agent":{"agentId":"a_1"}}`:                                                       "a_1",
		`{"vault_ids":["v_1"]}`:                                                             "v_1",
		`{"tools":[{"type":"agent_20270101","agent\u005fid":"a_1"}]}`:                       "a_1",
		`{"trace_id":"t","user_id":"u","session_id":"s","request_id":"r"}`:                  "",
		`{"metadata":{"order_id":"o_1"}}`:                                                   "",
		`{"client_metadata":{"x-codex-installation-id":"i","turn_id":"t"}}`:                 "",
		`{"tools":[{"name":"f","input_schema":{"properties":{"file_id":{"type":"s"}}}}]}`:   "",
		`{"messages":[{"content":[{"type":"tool_use","id":"t","input":{"file_id":"f"}}]}]}`: "",
		`{"messages":[{"content":[{"type":"tool_result","tool_use_id":"t"}]}]}`:             "",
		`{"thread":{"type":"create"}}`:                                                      "",
		`{"thread":null,"container":null}`:                                                  "",
	} {
		object, _ := plugins.ParseObject([]byte(body))
		var got string
		for _, id := range StateOf(plugins.Messages, object).IDs {
			got += id.ID
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", body, got, want)
		}
	}
}

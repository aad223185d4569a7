package observe

import (
	"testing"

	"github.com/weirhq/weir/plugins"
)

// A path tells which batch it is of, and whether a POST makes one, whatever stands before it.
func TestParseInlineBatch(t *testing.T) {
	for path, want := range map[string]InlineBatch{
		"/v1/messages/batches":                          {Dialect: plugins.Messages, Creates: true},
		"/a/v1/messages/batches/":                       {Dialect: plugins.Messages, Creates: true},
		"/v1/messages/batches/b":                        {Dialect: plugins.Messages, ID: "b"},
		"/v1/messages/batches/b/results":                {Dialect: plugins.Messages, ID: "b", Part: "results"},
		"/v1/messages/batches/b/cancel":                 {Dialect: plugins.Messages, ID: "b", Part: "cancel"},
		"/v1/messages/batches/b/x":                      {},
		"/v1/messages/batches/b/results/x":              {},
		"/v1/messages/batchesx":                         {},
		"/v1beta/models/gemini-x:batchGenerateContent":  {Dialect: plugins.GenerateContent, Creates: true},
		"/v1beta/batches":                               {Dialect: plugins.GenerateContent},
		"/v1alpha/batches/b":                            {Dialect: plugins.GenerateContent, ID: "batches/b"},
		"/v1beta/batches/b:cancel":                      {Dialect: plugins.GenerateContent, ID: "batches/b", Part: "cancel"},
		"/v1beta/batches/b:update":                      {},
		"/v1beta/models/gemini-x/:batchGenerateContent": {},
		"/v1/batches/batch_1":                           {}, // of OpenAI
		"/v1/batches":                                   {},
		"/v1/messages":                                  {},
	} {
		if got, ok := ParseInlineBatch(path); got != want || ok != (want != InlineBatch{}) {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}

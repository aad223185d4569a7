package transcript

import "github.com/weirhq/weir/plugins"

// formats are those of the dialects that the tests have traffic of.
var formats = map[plugins.Dialect]*Format{
	plugins.Unknown:         {},
	plugins.Embeddings:      {Input: []string{"input"}},
	plugins.Chat:            &Chat,
	plugins.Completions:     &Completions,
	plugins.Responses:       &Responses,
	plugins.Messages:        &Messages,
	plugins.GenerateContent: &GenerateContent,
	plugins.Interactions:    &Interactions,
	plugins.Runs:            &Runs,
	plugins.Converse:        &Converse,
	plugins.Invoke:          &Invoke,
	plugins.CohereChat:      &CohereChat,
	plugins.OllamaChat:      &OllamaChat,
	plugins.OllamaGenerate:  &OllamaGenerate,
}

package llmgateway

import (
	"bytes"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
)

// Bounds of what calls use.
const (
	// realtimeOutput is the most that a response of Realtime says, in tokens
	// (https://platform.openai.com/docs/models/gpt-realtime).
	realtimeOutput = 4096
	// documents is how many documents one unit of a search ranks, and chunkTokens how long
	// the pieces are that count as documents (https://cohere.com/pricing).
	documents   = 100
	chunkTokens = 500
	// longestAudio is the length, in seconds, of audio in a format whose bytes do not bound it.
	longestAudio = 24 * 60 * 60
)

// textOnly is the usage of endpoints that write nothing. A request has several texts, so
// that the model's limit does not bound it.
func (in *input) textOnly(by bound.Scale) plugins.Usage {
	input := in.tokens(by)
	if in.form == nil {
		input += in.pictures() * bound.PictureTokens
	}
	return plugins.Usage{Input: plugins.Known(input), Output: plugins.Known(0)}
}

// images is the usage of images, which are charged by the piece or in tokens.
func (in *input) images(by bound.Scale) plugins.Usage {
	n := max(in.field("n").Int(), 1)
	sent := in.pictures() * bound.ImageTokens
	return plugins.Usage{
		Input: plugins.Known(in.tokens(by) + sent), InputImage: plugins.Known(sent), Images: plugins.Known(n),
		Output: plugins.Known(n * bound.ImageTokens), OutputImage: plugins.Known(n * bound.ImageTokens),
	}
}

// audio is the usage of speech to text, which is charged by its length or in tokens.
func (in *input) audio(by bound.Scale) plugins.Usage {
	seconds := (int64(len(in.body)) + by.SpeechBytes - 1) / by.SpeechBytes
	if in.form == nil || len(in.form.files) != 1 || !bound.HasLowestRate(bytes.NewReader(in.form.files[0])) {
		seconds = longestAudio
	}
	tokens := plugins.Known(seconds * by.SpeechTokens)
	return plugins.Usage{
		Input: tokens, InputAudio: tokens, Output: tokens, AudioDuration: plugins.Duration{N: plugins.Milliseconds(seconds * 1000), Valid: true},
	}
}

// speech is the usage of text to speech: a token of text is spoken in less than a second.
func (in *input) speech(by bound.Scale) plugins.Usage {
	input := in.tokens(by)
	tokens := plugins.Known(input * by.SpeechTokens)
	return plugins.Usage{Input: plugins.Known(input), Output: tokens, OutputAudio: tokens}
}

// rerank is the usage of rankings. A document with the query is counted again for each chunk.
func (in *input) rerank(by bound.Scale) plugins.Usage {
	list := in.field("documents")
	n := list.Get("#").Int()
	chunks := n + (by.Text(int64(len(list.Raw)))+n*by.Text(int64(len(in.field("query").Raw))))/chunkTokens
	usage := in.textOnly(by)
	usage.SearchUnits = plugins.Known(max((chunks+documents-1)/documents, 1))
	return usage
}

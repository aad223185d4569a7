package bound

import "github.com/weirhq/weir/plugins"

// Used is what a call uses: so far, or at most.
type Used struct {
	Cost  plugins.Cost
	Usage plugins.Usage
}

// Free is what a call uses that costs nothing.
func Free() Used {
	return Used{Cost: plugins.KnownCost(0), Usage: plugins.Usage{Input: plugins.Known(0), Output: plugins.Known(0)}}
}

// Scale is how tokens are counted in bytes.
type Scale struct {
	TextBytes                 int64 // of a token of text
	SpeechBytes, SpeechTokens int64 // of a second of audio
}

var (
	// Likely counts as most calls do, for estimates that harm nobody where they are too low.
	Likely = Scale{4, 4000, 20}
	// UpperBound counts so that no call uses more. Digits, rare characters and random letters have up
	// to a token for each byte. The lowest rate of MP3 is 8 kbit/s, and HasLowestRate tells which
	// formats take as much. Gemini counts the most tokens of audio
	// (https://ai.google.dev/gemini-api/docs/audio#technical-details).
	UpperBound = Scale{1, 1000, 32}
)

// Text returns the tokens in a text of this size.
func (s Scale) Text(bytes int64) int64 { return (bytes + s.TextBytes - 1) / s.TextBytes }

package lineage

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/transcript"
	"github.com/weirhq/weir/storage"
)

const (
	// maxAnswer bounds an answer that is read, in bytes.
	maxAnswer = 1 << 20
	// maxUnread bounds the answers that are kept unread, in bytes.
	maxUnread = 4 << 20
	// maxToolName bounds the name of a tool in a property, in bytes.
	maxToolName = 128
)

// unread keeps the newest answers as they came. An answer is read when a later call has
// to be told whether it continues this call or another one with the same messages. Most
// answers are never read: evaluations and probes repeat their prompts, and nobody
// continues them.
type unread struct {
	ring []byte // nil until there is an answer
	end  uint64 // bytes that were ever written, and skipped at the end of the ring
}

// place is where an answer is in unread. The zero place is that of no answer.
type place struct {
	at   uint64
	size uint32 // bytes
}

// keep copies an answer, in place of the oldest ones. The answer follows its dialect and
// its content type, each on a line.
func (u *unread) keep(d plugins.Dialect, body storage.Body) place {
	if u.ring == nil {
		u.ring = make([]byte, maxUnread)
	}
	size := uint64(len(d) + len(body.Type) + len(body.Data) + 2)
	if free := maxUnread - u.end%maxUnread; size > free {
		u.end += free // an answer is in one piece
	}
	p := place{at: u.end, size: uint32(size)}
	to := u.ring[p.at%maxUnread:][:0]
	to = append(append(to, d...), '\n')
	to = append(append(to, body.Type...), '\n')
	_ = append(to, body.Data...)
	u.end += size
	return p
}

// texts returns the hashes of the texts in an answer, nil if newer answers have taken its
// place.
func (u *unread) texts(p place) []uint64 {
	if p.size == 0 || u.end-p.at > maxUnread {
		return nil
	}
	dialect, rest, _ := bytes.Cut(u.ring[p.at%maxUnread:][:p.size], []byte("\n"))
	contentType, data, _ := bytes.Cut(rest, []byte("\n"))
	return textHashes(turnsOf(plugins.Dialect(dialect), storage.Body{Type: string(contentType), Data: data}))
}

func turnsOf(d plugins.Dialect, body storage.Body) []transcript.Turn {
	f := observe.Transcript(d)
	stored, _ := f.Stored(body.Type, body.Data)
	return f.Response(stored)
}

// toolCall is a call of a tool: the tool's name, and the hash of the name and the
// arguments.
type toolCall struct {
	name string
	hash uint64
}

// toolCalls returns the calls of tools in an answer, and the tasks: the hashes of the
// texts in the arguments.
func toolCalls(turns []transcript.Turn) (calls []toolCall, tasks []uint64) {
	for _, turn := range turns {
		for _, call := range turn.Calls {
			name := strings.ToValidUTF8(call.Name[:min(len(call.Name), maxToolName)], "")
			calls = append(calls, toolCall{name, Hash(call.Name, call.Arguments)})
			tasks = appendArguments(tasks, call.Arguments, observe.TaskLetters)
		}
	}
	return calls, tasks
}

// textHashes returns the hashes of all texts of an answer that its client sends again.
func textHashes(turns []transcript.Turn) (hashes []uint64) {
	for _, turn := range turns {
		for _, text := range turn.Texts {
			hashes = appendHash(hashes, text, observe.AnswerLetters)
		}
		for _, call := range turn.Calls {
			hashes = appendHash(hashes, call.ID, observe.AnswerLetters)
			hashes = appendHash(hashes, call.Arguments, observe.AnswerLetters)
			hashes = appendArguments(hashes, call.Arguments, observe.AnswerLetters)
		}
	}
	return hashes
}

// appendArguments appends the hashes of the texts in the arguments of a tool.
func appendArguments(hashes []uint64, arguments string, letters int) []uint64 {
	gjson.Parse(arguments).ForEach(func(_, argument gjson.Result) bool {
		hashes = appendHash(hashes, argument.Str, letters)
		return true
	})
	return hashes
}

// appendHash appends the hash of a text, unless the text is too short to tell it from
// others.
func appendHash(hashes []uint64, text string, letters int) []uint64 {
	if hash, ok := observe.TextHash(text, letters); ok {
		hashes = append(hashes, hash)
	}
	return hashes
}

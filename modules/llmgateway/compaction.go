package llmgateway

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// compactionPrompt asks for the summary that a compaction holds. The conversation, the
// instructions and the tools before it are the client's own, so that the provider's
// cache of these is used.
const compactionPrompt = `Summarize the conversation up to here. Another model will go on with it, and will see nothing of it but your summary and the latest messages of the user. Say what the user wants, with each instruction, limit and preference that still applies; what was done and found out, with the exact names, paths, identifiers, numbers, code and results of tools that will be needed again; what was decided, and why; what failed; what is still open, and what comes next. Leave out what no longer matters, and nothing else. Do not go on with the work and call no tool: answer with the summary alone.`

// summaryHeading comes before a summary in the message that a compaction stands for.
const summaryHeading = "This is a summary of the earlier conversation, which replaces it:\n\n"

// maxUserMessages bounds the messages of the user that a compaction leaves as they are, in
// bytes.
const maxUserMessages = 64 << 10

// compaction is what a call asks to compact.
type compaction struct {
	userMessages []string // messages of the user that the compaction leaves as they are
}

// summary is the lane in which a model writes the summary for a compaction.
type summary struct{ translation }

// Request implements lane.
func (s *summary) Request() (*http.Request, error) {
	parsed, err := s.parsed()
	if err != nil {
		return nil, err
	}
	return s.prepare(parsed, s.a.target.Account.API.Prepare)
}

// parseCompaction reads a request for a compaction as a request for the summary.
func parseCompaction(body []byte) (*translate.Request, error) {
	if err := translate.CheckObject(body); err != nil {
		return nil, err
	}
	if stream := gjson.GetBytes(body, "stream"); stream.Bool() && !history.EndsWithTrigger(body) {
		return nil, plugins.Unsupported("stream", "Unsupported parameter: 'stream': a compaction is answered in one piece.")
	}
	if v := gjson.GetBytes(body, "input"); v.Type != gjson.String && !v.IsArray() {
		return translate.ParseRequest(body) // its error says what is missing, or wrong
	}
	input := history.InputOf(body)
	if history.EndsWithTrigger(body) {
		input = input[:len(input)-1]
	}
	if len(input) == 0 {
		return nil, plugins.Invalid("input", "Invalid 'input': there is nothing to compact.")
	}
	prompt := plugins.AppendString([]byte(`{"type":"message","role":"user","content":`), compactionPrompt)
	request, err := history.SetItems(body, "input", append(input, string(prompt)+"}"))
	if err == nil && gjson.GetBytes(request, "tools.#").Int() > 0 {
		request, err = sjson.SetBytes(request, "tool_choice", "none")
	}
	if err == nil {
		request, err = sjson.DeleteBytes(request, "text.format")
	}
	if err == nil {
		request, err = sjson.SetBytes(request, "store", false)
	}
	if err != nil {
		return nil, err
	}
	return translate.ParseRequest(request)
}

// Answer implements lane. It answers the compaction with the summary of the provider.
func (s *summary) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a, c := s.a, s.a.call
	reader := translate.NewAssembler(s.request, nil, translate.Options{})
	a.x.Answer = reader
	memory := c.answerMemory(resp)
	defer memory.Release()
	s.decode(resp, reader, memory)
	if e := reader.Failure(); memory.Refused() {
		return a.endOutOfMemory(e)
	} else if e != nil {
		return a.endBroken(e)
	}
	stopped := reader.StopReason() == translate.ReasonStop
	text := responseText(reader.End())
	if !stopped || text == "" {
		return a.endBroken(plugins.Upstream("The model wrote no summary of the conversation, or did not finish it."))
	}
	record := hex.EncodeToString(a.x.Record.ID[:])
	item := plugins.AppendString([]byte(`{"id":`), "cmp_"+record)
	item = plugins.AppendString(append(item, `,"type":"compaction","encrypted_content":`...), s.secrets.Seal(compactionOf(c.exchange.Record.Org), text))
	item = append(item, '}')
	if c.dialect == plugins.Responses {
		return s.answerItem(item, reader, resp.Header)
	}
	b := plugins.AppendString([]byte(`{"id":`), history.ResponseID(a.x.Record.ID))
	b = strconv.AppendInt(append(b, `,"object":"response.compaction","created_at":`...), reader.Created(), 10)
	b = append(b, `,"output":[`...)
	for _, message := range history.Completed(c.input.compaction.userMessages, record) {
		b = append(append(b, message...), ',')
	}
	b = append(reader.AppendUsage(append(append(b, item...), `],"usage":`...)), '}')
	a.client.writeObject(b, jsonType, resp.Header)
	a.finish(true)
	return routing.Answered, nil
}

// answerItem answers a response whose output is one item. reader has read the rest of the response.
func (s *summary) answerItem(item []byte, reader *translate.Assembler, upstream http.Header) (routing.Outcome, *plugins.Error) {
	a := s.a
	var events bytes.Buffer
	seen := reader.Info()
	assembler := translate.NewAssembler(s.request, &events, translate.Options{ID: history.IDs(a.x.Record.ID)})
	assembler.Start(seen.Model, seen.ResponseID)
	assembler.ServiceTier(seen.ServiceTier)
	assembler.InferenceGeo(seen.InferenceGeo)
	assembler.Report(seen)
	assembler.Item(item)
	assembler.Finish(translate.ReasonStop)
	rest := assembler.End()
	events.Write(rest)
	a.x.Record.ResponseBytes = int64(events.Len())
	if a.x.Record.Stream = s.request.Stream; !s.request.Stream {
		a.client.writeObject(rest, jsonType, upstream)
	} else {
		a.client.keepResponse(assembler.Response(), jsonType)
		a.x.Commit(storage.Complete)
		a.client.writeEvents(events.Bytes(), upstream)
	}
	a.finish(true)
	return routing.Answered, nil
}

// responseText is the text of a response.
func responseText(response []byte) string {
	var texts []string
	for _, text := range gjson.GetBytes(response, `output.#.content.#(type=="output_text")#.text|@flatten`).Array() {
		texts = append(texts, text.Str)
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// compactionOf names whom a compaction is sealed for: one organisation, with any provider.
func compactionOf(org string) string { return "compaction of " + org }

// openCompactions puts messages in the place of the compactions in the input that were
// sealed for the organisation. Those of a provider stay.
func (h *Handler) openCompactions(org string, body []byte) ([]byte, error) {
	if !bytes.Contains(body, []byte(`"compaction"`)) || !bytes.Contains(body, []byte(secret.Sealed)) {
		return body, nil
	}
	secrets, err := h.secrets()
	if err != nil {
		return nil, err
	}
	opened := history.EditArray(body, "input", func(i int, item gjson.Result) string {
		content := item.Get("encrypted_content").Str
		if item.Get("type").Str != "compaction" || !strings.HasPrefix(content, secret.Sealed) {
			return item.Raw
		}
		text, ok := secrets.Open(compactionOf(org), content)
		if !ok && err == nil {
			param := "input[" + strconv.Itoa(i) + "].encrypted_content"
			err = plugins.Invalid(param, "The compaction cannot be opened: it was made for another organisation, or by a gateway with another secret.")
		}
		return string(plugins.AppendString([]byte(`{"type":"message","role":"user","content":`), summaryHeading+text)) + "}"
	})
	return opened, err
}

// latestUserMessages are the last messages of the user in an input, as many as the bound
// allows.
func latestUserMessages(body []byte) []string {
	var messages []string
	size := 0
	for _, item := range slices.Backward(history.InputOf(body)) {
		v := gjson.Parse(item)
		if kind := v.Get("type").Str; kind != "" && kind != "message" || v.Get("role").Str != "user" {
			continue
		}
		if size += len(item); size > maxUserMessages {
			break
		}
		messages = append(messages, item)
	}
	slices.Reverse(messages)
	return messages
}

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
)

// TestOpenResponses asks each kind of provider what the compliance tests of Open
// Responses (https://www.openresponses.org/compliance) ask, over HTTP and over
// WebSocket, and holds the answers against its schemas and the grammar of streams.
// What comes of it is a table of docs/clients.md.
func TestOpenResponses(t *testing.T) {
	w := startKinds(t)
	outcomes := make(table)
	for _, k := range providerKinds {
		for _, c := range complianceTests {
			err := c.run(complianceSubject{t.Context(), w, k.id()})
			outcomes.set(c.name, k.name, err)
		}
	}
	names := make([]string, len(complianceTests))
	for i, c := range complianceTests {
		names[i] = c.name
	}
	checkPage(t, "../../docs/clients.md", "open responses", outcomes.markdown(names, kindNames()))
}

func kindNames() []string {
	names := make([]string, len(providerKinds))
	for i, k := range providerKinds {
		names[i] = k.name
	}
	return names
}

// complianceSubject is a model that is tested.
type complianceSubject struct {
	ctx   context.Context
	weir  *weir
	model string
}

// complianceTests have the names of those of Open Responses. The prompts name the
// functions that an echo shall call.
var complianceTests = []struct {
	name string
	run  func(complianceSubject) error
}{
	{"basic-response", over(false, completes, say("Say hello."))},
	{"assistant-phase", over(false, completes, object{"input": []object{
		{"type": "message", "role": "assistant", "phase": "commentary", "content": "The stored number is the answer."},
		{"type": "message", "role": "assistant", "phase": "final_answer", "content": "It is four."},
		{"type": "message", "role": "user", "content": "Which number?"},
	}})},
	{"response-output-phase-schema", phasesAreInTheSchema},
	{"streaming-response", over(true, completes, say("Count to five."))},
	{"websocket-response", overSocket(say("Count to three."))},
	{"websocket-sequential-responses", overSocket(unstored("one"), unstored("two"))},
	{"websocket-continuation", continuesOnSocket},
	{"websocket-reconnect-store-false-recovery", recoversOnSocket},
	{"websocket-previous-response-not-found", findsNothingOnSocket},
	{"websocket-failed-continuation-evicts-cache", forgetsOnSocket},
	{"websocket-compact-new-chain", goesOnFromCompaction},
	{"system-prompt", over(false, completes, object{"input": []object{
		{"type": "message", "role": "system", "content": "Speak like a sailor."},
		{"type": "message", "role": "user", "content": "Say hello."},
	}})},
	{"tool-calling", over(false, callsWeather, withWeather)},
	{"tool-calling-streaming", over(true, callsWeather, withWeather)},
	{"image-input", over(false, completes, object{"input": []object{{"type": "message", "role": "user", "content": []object{
		{"type": "input_text", "text": "What is this?"},
		{"type": "input_image", "image_url": dot},
	}}}})},
	{"multi-turn", over(false, completes, object{"input": []object{
		{"type": "message", "role": "user", "content": "I am Ada."},
		{"type": "message", "role": "assistant", "content": "Hello Ada."},
		{"type": "message", "role": "user", "content": "Who am I?"},
	}})},
	{"compact-response", compacts},
	{"compact-missing-model", refusesCompactionWithoutModel},
}

// dot is an image of one pixel.
const dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

var withWeather = object{
	"input": []object{{"type": "message", "role": "user", "content": "What is the weather in Oslo? get_weather()"}},
	"tools": []object{{"type": "function", "name": "get_weather", "description": "The weather of a place.", "parameters": object{
		"type": "object", "properties": object{"location": object{"type": "string"}}, "required": []string{"location"},
	}}},
}

func say(text string) object {
	return object{"input": []object{{"type": "message", "role": "user", "content": text}}}
}

func unstored(text string) object { return object{"store": false, "input": text} }

// over asks over HTTP.
func over(stream bool, holds func(gjson.Result) error, request object) func(complianceSubject) error {
	return func(s complianceSubject) error {
		status, body, err := s.post("/v1/responses", with(request, "stream", stream))
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return refused(gjson.ParseBytes(body).Get("error"))
		}
		if stream {
			return checkEvents(body, holds)
		}
		return checkObject(gjson.ParseBytes(body), holds)
	}
}

func with(request object, name string, value any) object {
	changed := object{name: value}
	for key, value := range request {
		changed[key] = value
	}
	return changed
}

// post posts a request of the model, unless it shall have none.
func (s complianceSubject) post(path string, request object) (status int, body []byte, err error) {
	if s.model != "" {
		request = with(request, "model", s.model)
	}
	r, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.weir.url+path, bytes.NewReader(mustJSON(request)))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer weir-quickstart")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(resp.Body)
	return resp.StatusCode, b.Bytes(), err
}

func refused(e gjson.Result) error { return errors.New(e.Get("message").Str) }

func checkEvents(events []byte, holds func(gjson.Result) error) error {
	result, err := plugintest.Check(events)
	if err != nil {
		return fmt.Errorf("an illegal stream: %w", err)
	}
	return checkObject(gjson.ParseBytes(result.Response), holds)
}

func checkObject(response gjson.Result, holds func(gjson.Result) error) error {
	if err := checkSchema(response); err != nil {
		return err
	}
	return holds(response)
}

func completes(response gjson.Result) error {
	if response.Get("status").Str != "completed" || response.Get("output.#").Int() == 0 {
		return fmt.Errorf("the response is %s with %d items", response.Get("status").Str, response.Get("output.#").Int())
	}
	return nil
}

func callsWeather(response gjson.Result) error {
	if name := response.Get(`output.#(type=="function_call").name`).Str; name != "get_weather" {
		return fmt.Errorf("no call of the function is among the output %s", response.Get("output").Raw)
	}
	return completes(response)
}

// phasesAreInTheSchema is about the schema alone.
func phasesAreInTheSchema(complianceSubject) error {
	message := func(phase string) object {
		return object{"id": "msg_" + phase, "type": "message", "status": "completed", "role": "assistant", "phase": phase,
			"content": []object{{"type": "output_text", "text": "four", "annotations": []any{}}}}
	}
	return checkItems(gjson.ParseBytes(mustJSON([]object{message("commentary"), message("final_answer")})))
}

// socketClient is a client's end of a WebSocket.
type socketClient struct {
	complianceSubject
	conn interface {
		Read([]byte) (int, error)
		Write([]byte) (int, error)
		Close() error
	}
}

func (s complianceSubject) dial() (*socketClient, error) {
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP{"Authorization": {"Bearer weir-quickstart"}}, Timeout: patience}
	conn, _, _, err := dialer.Dial(s.ctx, "ws"+strings.TrimPrefix(s.weir.url, "http")+"/v1/responses")
	return &socketClient{s, conn}, err
}

// ask makes a call, and returns its response or the code of its error.
func (c *socketClient) ask(request object) (response gjson.Result, code string, err error) {
	message := mustJSON(with(with(request, "type", "response.create"), "model", c.model))
	if err := wsutil.WriteClientText(c.conn, message); err != nil {
		return response, "", err
	}
	var events bytes.Buffer
	for {
		event, err := wsutil.ReadServerText(c.conn)
		if err != nil {
			return response, "", err
		}
		if !json.Valid(event) {
			return response, "", fmt.Errorf("a message is not JSON: %.100q", event)
		}
		fmt.Fprintf(&events, "data: %s\n\n", event)
		switch e := gjson.ParseBytes(event); e.Get("type").Str {
		case "error":
			return response, e.Get("error.code").Str, refused(e.Get("error"))
		case "response.completed", "response.incomplete", "response.failed":
			response = e.Get("response")
			return response, response.Get("error.code").Str, checkEvents(events.Bytes(), completes)
		}
	}
}

// overSocket makes calls over one WebSocket.
func overSocket(requests ...object) func(complianceSubject) error {
	return func(s complianceSubject) error {
		c, err := s.dial()
		if err != nil {
			return err
		}
		defer c.conn.Close()
		for _, request := range requests {
			if _, _, err := c.ask(request); err != nil {
				return err
			}
		}
		return nil
	}
}

// begin asks over a new WebSocket, and returns the id of the response.
func (s complianceSubject) begin() (*socketClient, string, error) {
	c, err := s.dial()
	if err != nil {
		return nil, "", err
	}
	response, _, err := c.ask(unstored("Remember the word cobalt."))
	if err != nil {
		c.conn.Close()
		return nil, "", err
	}
	return c, response.Get("id").Str, nil
}

func continuesOnSocket(s complianceSubject) error {
	c, id, err := s.begin()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	_, _, err = c.ask(with(unstored("Which word?"), "previous_response_id", id))
	return err
}

const notFound = "previous_response_not_found"

// mustNotFind makes a call that goes on from what is not there.
func (c *socketClient) mustNotFind(id string) error {
	_, code, err := c.ask(with(unstored("Go on."), "previous_response_id", id))
	if code == notFound {
		return nil
	}
	if err == nil {
		err = errors.New("it was answered")
	}
	return fmt.Errorf("the code is %q, want %s: %w", code, notFound, err)
}

func recoversOnSocket(s complianceSubject) error {
	first, id, err := s.begin()
	if err != nil {
		return err
	}
	first.conn.Close()
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	if err := c.mustNotFind(id); err != nil {
		return err
	}
	_, _, err = c.ask(unstored("Begin again."))
	return err
}

func findsNothingOnSocket(s complianceSubject) error {
	c, err := s.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	return c.mustNotFind("resp_missing")
}

func forgetsOnSocket(s complianceSubject) error {
	c, id, err := s.begin()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	output := []object{{"type": "function_call_output", "call_id": "call_missing", "output": "Nobody called."}}
	if _, _, err := c.ask(object{"store": false, "previous_response_id": id, "input": output}); err == nil {
		return errors.New("an output without a call was accepted")
	}
	return c.mustNotFind(id)
}

// compaction is the compacted conversation of a model.
func (s complianceSubject) compaction() (gjson.Result, error) {
	status, body, err := s.post("/v1/responses/compact", object{"prompt_cache_key": "compliance", "input": []object{
		{"type": "message", "role": "user", "content": "We start on Tuesday."},
		{"type": "message", "role": "assistant", "content": "On Tuesday, then."},
	}})
	v := gjson.ParseBytes(body)
	if err == nil && status != http.StatusOK {
		err = refused(v.Get("error"))
	}
	return v, err
}

func compacts(s complianceSubject) error {
	v, err := s.compaction()
	if err != nil {
		return err
	}
	if err := checkFields(v, compactionFields); err != nil {
		return err
	}
	if v.Get("object").Str != "response.compaction" || !v.Get(`output.#(type=="compaction")`).Exists() {
		return fmt.Errorf("it is no compaction: %s", v.Raw)
	}
	return nil
}

func goesOnFromCompaction(s complianceSubject) error {
	v, err := s.compaction()
	if err != nil {
		return err
	}
	var input []any
	for _, item := range v.Get("output").Array() {
		input = append(input, json.RawMessage(item.Raw))
	}
	input = append(input, object{"type": "message", "role": "user", "content": "Go on."})
	return overSocket(object{"store": false, "input": input, "tools": []any{}})(s)
}

func refusesCompactionWithoutModel(s complianceSubject) error {
	s.model = ""
	status, _, err := s.post("/v1/responses/compact", say("Compact this."))
	if err == nil && status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		err = fmt.Errorf("the status is %d, want 400", status)
	}
	return err
}

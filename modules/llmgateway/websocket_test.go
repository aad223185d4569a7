package llmgateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/storage"
)

// wsClient is the client's side of a WebSocket.
type wsClient struct {
	t *testing.T
	net.Conn
	from io.Reader
}

func (s *site) dial(key string, header ...string) (*wsClient, error) {
	s.t.Helper()
	fields := http.Header{"Authorization": {"Bearer " + key}}
	for i := 0; i < len(header); i += 2 {
		fields.Set(header[i], header[i+1])
	}
	dialer := ws.Dialer{Header: ws.HandshakeHeaderHTTP(fields)}
	conn, buffered, _, err := dialer.Dial(context.Background(), "ws"+strings.TrimPrefix(s.URL, "http")+"/v1/responses")
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() { conn.Close() })
	c := &wsClient{s.t, conn, conn}
	if buffered != nil {
		c.from = io.MultiReader(buffered, conn)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return c, nil
}

func (s *site) socket(header ...string) *wsClient {
	s.t.Helper()
	c, err := s.dial("k", header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (c *wsClient) say(message string) {
	c.t.Helper()
	if err := wsutil.WriteClientText(c.Conn, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// hear reads the events of one call, of which it returns the last. They must be legal.
func (c *wsClient) hear() string {
	c.t.Helper()
	var stream strings.Builder
	for {
		data, err := wsutil.ReadServerText(struct {
			io.Reader
			io.Writer
		}{c.from, c.Conn})
		if err != nil {
			c.t.Fatalf("%v, behind %s", err, &stream)
		}
		kind := gjson.GetBytes(data, "type").Str
		if kind == "error" && stream.Len() == 0 {
			return string(data)
		}
		stream.WriteString("event: " + kind + "\ndata: " + string(data) + "\n\n")
		if kind == "response.completed" || kind == "response.failed" || kind == "response.incomplete" {
			if _, err := plugintest.Check([]byte(stream.String())); err != nil {
				c.t.Fatalf("%v\n%s", err, &stream)
			}
			return string(data)
		}
	}
}

func (c *wsClient) ask(message string) string {
	c.t.Helper()
	c.say(message)
	return c.hear()
}

const createOver = `{"type":"response.create",`

func TestAnyProviderAnswersOverAWebSocket(t *testing.T) {
	for _, stored := range []string{"true", "false"} {
		t.Run("store "+stored, func(t *testing.T) {
			var sent remembering
			s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
			c := s.socket()
			first := gjson.Get(c.ask(createOver+`"model":"one/m","input":"first","store":`+stored+`}`), "response")
			if first.Get("status").Str != "completed" || first.Get("output.0.content.0.text").Str != "hello" {
				t.Fatal(first.Raw)
			}
			second := gjson.Get(c.ask(createOver+`"model":"one/m","input":"second","store":`+stored+`,"previous_response_id":`+first.Get("id").Raw+`}`), "response")
			if second.Get("previous_response_id").Str != first.Get("id").Str {
				t.Error("the second response says", second.Raw)
			}
			c.ask(createOver + `"model":"raw/m","input":"third","store":` + stored + `,"previous_response_id":` + second.Get("id").Raw + `}`)
			if got := texts(gjson.Get(sent.last(), "input").Raw); got != "user:first assistant:hello user:second assistant:hello user:third" {
				t.Errorf("the third call was sent %s", sent.last())
			}
			if r := gjson.Parse(sent.last()); r.Get("type").Exists() || !r.Get("stream").Bool() || r.Get("previous_response_id").Exists() {
				t.Errorf("the third call was sent %s", sent.last())
			}
			c.Close()
			s.Close()
			records := s.kept.all()
			if len(records) != 3 {
				t.Fatalf("%d records", len(records))
			}
			for _, r := range records {
				if r.EndState != storage.Complete || !r.Stream || !r.Usage.Input.Valid || r.Status.N != 200 {
					t.Errorf("the record is %+v", r)
				}
			}
			if status, _ := serveStatus(s, first.Get("id").Str); (status == 200) != (stored == "true") {
				t.Errorf("asked for over HTTP: %d", status)
			}
		})
	}
}

// serveStatus asks the handler itself, for a site that is closed.
func serveStatus(s *site, id string) (int, string) {
	store, err := s.handler.responses.Store(&storage.Record{Org: "default", UserID: ""})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := store.Find(context.Background(), id); err != nil {
		return http.StatusNotFound, err.Error()
	}
	return http.StatusOK, ""
}

// What is kept nowhere can be continued on the socket that it was answered on alone.
func TestASocketGoesOnFromWhatIsOmitted(t *testing.T) {
	var sent remembering
	s := serve(t, map[string][]upstream{"one": {hello}, "raw": {sent.then(speaksResponses)}})
	c := s.socket("Service-Omit-Response", "true", "Service-User-Id", "u-1")
	unknown := c.ask(createOver + `"model":"one/m","input":"x","store":false,"previous_response_id":"resp_01a2044867a97d24969338350b98f188"}`)
	if gjson.Get(unknown, "error.code").Str != "previous_response_not_found" {
		t.Error(unknown)
	}
	first := gjson.Get(c.ask(createOver+`"model":"one/m","input":"first"}`), "response")
	c.ask(createOver + `"model":"raw/m","input":"second","previous_response_id":` + first.Get("id").Raw + `}`)
	if got := texts(gjson.Get(sent.last(), "input").Raw); got != "user:first assistant:hello user:second" {
		t.Errorf("sent %s", sent.last())
	}
	other := gjson.Parse(s.socket().ask(createOver + `"model":"one/m","input":"x","previous_response_id":` + first.Get("id").Raw + `}`))
	if other.Get("error.code").Str != "previous_response_not_found" {
		t.Error("another socket goes on:", other.Raw)
	}
	for _, r := range s.kept.all()[:3] {
		if !r.ResponseOmitted || r.response != "" || r.UserID != "u-1" {
			t.Errorf("the record is %+v", r)
		}
	}
}

func TestAWarmUpGeneratesNothingAndIsContinued(t *testing.T) {
	var sent remembering
	s := serve(t, map[string][]upstream{"raw": {sent.then(speaksResponses)}})
	c := s.socket()
	warm := gjson.Get(c.ask(createOver+`"model":"raw/m","input":"early","generate":false}`), "response")
	warm = gjson.Get(c.ask(createOver+`"model":"raw/m","input":"first","generate":false,"previous_response_id":`+warm.Get("id").Raw+`}`), "response")
	if len(warm.Get("output").Array()) != 0 || warm.Get("status").Str != "completed" || sent.last() != "" || len(s.kept.all()) != 0 {
		t.Fatal(warm.Raw)
	}
	c.ask(createOver + `"model":"raw/m","input":"second","previous_response_id":` + warm.Get("id").Raw + `}`)
	if got := texts(gjson.Get(sent.last(), "input").Raw); got != "user:early user:first user:second" {
		t.Errorf("sent %s", sent.last())
	}
}

func TestAWebSocketSurvivesErrors(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}, "two": {status(422)}})
	c := s.socket()
	for message, want := range map[string]string{
		`{`:                               "400 ",
		`[]`:                              "400 ",
		`{"type":"response.cancel"}`:      "400 invalid_value",
		createOver + `"input":"x"}`:       "400 missing_required_parameter",
		createOver + `"model":"no/body"}`: "404 model_not_found",
		createOver + `"model":"one/m","input":"x","background":true}`:             "400 unsupported_parameter",
		createOver + `"model":"one/m","input":"x","previous_response_id":"resp"}`: "400 previous_response_not_found",
		createOver + `"model":"two/m","input":"x"}`:                               "422 server_error",
	} {
		e := gjson.Parse(c.ask(message))
		if got := e.Get("status").Raw + " " + e.Get("error.code").Str; e.Get("type").Str != "error" || got != want || e.Get("error.message").Str == "" {
			t.Errorf("%s: %s", message, e.Raw)
		}
	}
	c.say(createOver + `"model":"one/m","input":"one"}`)
	c.say(createOver + `"model":"one/m","input":"the other"}`)
	for range 2 {
		if got := gjson.Get(c.hear(), "response.status").Str; got != "completed" {
			t.Error(got)
		}
	}
}

func TestAWebSocketNeedsAKey(t *testing.T) {
	s := serve(t, nil)
	for key, want := range map[string]string{"nobody": "401", "narrow": "403"} {
		if _, err := s.dial(key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// Keys that a new configuration does not have must not be good for old sockets.
func TestAWebSocketEndsWithItsConfiguration(t *testing.T) {
	s := serve(t, nil)
	unloaded := make(chan struct{})
	s.handler.unloaded = unloaded
	c := s.socket()
	close(unloaded)
	_, err := wsutil.ReadServerText(struct {
		io.Reader
		io.Writer
	}{c.from, io.Discard})
	if closed, ok := errors.AsType[wsutil.ClosedError](err); !ok || closed.Code != ws.StatusGoingAway {
		t.Error(err)
	}
}

func TestACallEndsWhenItsWebSocketDoes(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, map[string][]upstream{"one": {func(w http.ResponseWriter, r *http.Request) {
		_, _ = bufio.NewReader(r.Body).WriteTo(io.Discard)
		close(began)
		<-r.Context().Done()
		close(ended)
	}}})
	c := s.socket()
	c.say(createOver + `"model":"one/m","input":"x"}`)
	<-began
	c.Close()
	<-ended
	s.settled()
}

package providers

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An answer of a provider that repeats the account's key does not tell it, whatever its status and its
// encoding, however it comes and is read. Everything else of an answer stays as it is.
func TestAnswersDoNotTellTheKey(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	for _, c := range []struct {
		key    string
		status int
		body   string
		want   string
	}{
		{key, 401, `{"error":{"param":"` + key + `","message":"no ` + key + key + `"}}`, `{"error":{"param":"*****************","message":"no **********************************"}}`},
		{key, 400, "sk-aaab-aaa" + key + " and sk-aaab-aaac-012", "sk-aaab-aaa***************** and sk-aaab-aaac-012"},
		{key, 500, "", ""},
		{key, 200, `{"base_resp":{"status_code":2049,"status_msg":"invalid api key ` + key + `"}}`, `{"base_resp":{"status_code":2049,"status_msg":"invalid api key *****************"}}`},
		{key, 401, `{"error":"no \u0073k-aaab\u002Daaac-0123, \\u0073k-aaab-aaac-012\\\u0033 or \u0073k"}`, `{"error":"no ***************************, ****************************** or \u0073k"}`},
		{"a+b/c=d/efgh+=", 401, `{"error":"a\u002bb\/c\u003dd\\/efgh+= at ?key=a%2Bb%2fc%3Dd/efgh%2B%3d, 50% \n a+b\/c=d"}`, `{"error":"*************************** at ?key=************************, 50% \n a+b\/c=d"}`},
		{key, 400, `\u0073k-aaab-aaac-012\u003`, `\u0073k-aaab-aaac-012\u003`},
		{"EMPTY", 400, "The input is EMPTY.", "The input is EMPTY."},
		{"", 400, "no key", "no key"},
	} {
		for name, pieces := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "end": iotest.DataErrReader} {
			for _, encoding := range []string{"", "gzip"} {
				resp := answerTo(t, c.key, c.status, encoding, pieces(encoded(t, encoding, c.body)))
				var body io.Reader = resp.Body
				if name == "bytes" {
					body = iotest.OneByteReader(body)
				}
				got, err := io.ReadAll(body)
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				if string(got) != c.want || err != nil || len(resp.Header) > 0 {
					t.Errorf("%s, %s, %d: %v, %q, %v, want %q", name, encoding, c.status, resp.Header, got, err, c.want)
				}
			}
		}
	}
}

// Of an answer whose encoding nobody can undo, nothing is read.
func TestUnknownEncodingsAreNotRead(t *testing.T) {
	resp := answerTo(t, "sk-aaab-aaac-0123", http.StatusOK, "x-odd", strings.NewReader("xyz"))
	if got, err := io.ReadAll(resp.Body); len(got) > 0 || err == nil || !strings.Contains(err.Error(), `"x-odd"`) {
		t.Errorf("%q, %v", got, err)
	}
}

// A WebSocket whose messages repeat the key does not tell it, and no message waits for the next one.
func TestWebSocketsDoNotTellTheKey(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	provider, gateway := net.Pipe()
	defer provider.Close()
	resp := sendThrough(t, key, &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: make(http.Header), Body: gateway})
	defer resp.Body.Close()
	for _, c := range []struct{ sent, want string }{
		{`{"error":"no sk-aaab-aaac-0123 or sk-aaab"}`, `{"error":"no ***************** or sk-aaab"}`},
		{"it ends in sk-aaab", "it ends in sk-aaab"},
		{"", ""},
		{strings.Repeat(`\u0073k-aaab-aaac-0123 `, 5000), strings.Repeat("********************** ", 5000)},
	} {
		sent, want := ws.MustCompileFrame(ws.NewTextFrame([]byte(c.sent))), ws.MustCompileFrame(ws.NewTextFrame([]byte(c.want)))
		go func() { _, _ = provider.Write(sent) }()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%.80q became %.80q, %v", sent, got, err)
		}
	}
	passed := make([]byte, 4)
	go func() { _, _ = resp.Body.(io.Writer).Write([]byte("ping")) }()
	if _, err := io.ReadFull(provider, passed); err != nil || string(passed) != "ping" {
		t.Errorf("the provider got %q, %v", passed, err)
	}
}

// A key that stands in several fragments of a message is masked, too. Control frames between the fragments
// pass at once, and the message begins and ends as before.
func TestFragmentsDoNotTellTheKey(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	frame := func(op ws.OpCode, fin bool, payload string) string {
		return string(ws.MustCompileFrame(ws.NewFrame(op, fin, []byte(payload))))
	}
	long := strings.Repeat("x", 70_000)
	for name, c := range map[string]struct{ sent, want string }{
		"two": {
			frame(ws.OpText, false, "no "+key[:10]) + frame(ws.OpContinuation, true, key[10:]+"."),
			frame(ws.OpText, false, "no ") + frame(ws.OpContinuation, true, "*****************."),
		},
		"many": {
			frame(ws.OpBinary, false, key[:1]) + frame(ws.OpContinuation, false, key[1:2]) + frame(ws.OpContinuation, false, "") + frame(ws.OpContinuation, true, key[2:]),
			frame(ws.OpBinary, true, "*****************"),
		},
		"escaped": {
			frame(ws.OpText, false, `no \u00`) + frame(ws.OpContinuation, true, `73`+key[1:]),
			frame(ws.OpText, false, "no ") + frame(ws.OpContinuation, true, "**********************"),
		},
		"another word": {
			frame(ws.OpText, false, "sk-aaab") + frame(ws.OpContinuation, false, "-b") + frame(ws.OpContinuation, true, "") + frame(ws.OpText, true, "-aaac-0123"),
			frame(ws.OpText, false, "sk-aaab-b") + frame(ws.OpContinuation, true, "") + frame(ws.OpText, true, "-aaac-0123"),
		},
		"the end of a message": {
			frame(ws.OpText, false, "a sk-aa") + frame(ws.OpContinuation, true, "") + frame(ws.OpText, true, "ab-aaac-0123"),
			frame(ws.OpText, false, "a ") + frame(ws.OpContinuation, true, "sk-aa") + frame(ws.OpText, true, "ab-aaac-0123"),
		},
		"a ping between": {
			frame(ws.OpText, false, "no "+key[:10]) + frame(ws.OpPing, true, "p "+key) + frame(ws.OpContinuation, true, key[10:]),
			frame(ws.OpText, false, "no ") + frame(ws.OpPing, true, "p *****************") + frame(ws.OpContinuation, true, "*****************"),
		},
		"a long end": {
			frame(ws.OpText, false, key[:10]) + frame(ws.OpContinuation, true, key[10:]+long),
			frame(ws.OpText, true, "*****************"+long),
		},
	} {
		if got, err := io.ReadAll(webSocket(t, key, c.sent)); string(got) != c.want || err != nil {
			t.Errorf("%s: %.80q became %.80q, %v, want %.80q", name, c.sent, got, err, c.want)
		}
	}
}

// A message in fragments of any size has what it had, and asterisks.
func TestLongMessagesInFragmentsAreMasked(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	text := strings.Repeat("a sk-aaab-aaac-0123 and "+key+key+" sk-", 3000)
	want := strings.ReplaceAll(text, key, "*****************")
	for _, size := range []int{1, 7, 500, 70_000} {
		var sent bytes.Buffer
		for from, op := 0, ws.OpText; from < len(text); from, op = from+size, ws.OpContinuation {
			to := min(from+size, len(text))
			_ = ws.WriteFrame(&sent, ws.NewFrame(op, to == len(text), []byte(text[from:to])))
		}
		head, message, err := wsutil.NextReader(webSocket(t, key, sent.String()), ws.StateClientSide)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(message); string(got) != want || head.OpCode != ws.OpText || err != nil {
			t.Errorf("in pieces of %d bytes: %d of %d bytes, %v", size, len(got), len(want), err)
		}
	}
}

// A provider that masks its frames, which would hide the key, is not read.
func TestMaskedFramesAreNotRead(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	sent := ws.MustCompileFrame(ws.MaskFrame(ws.NewTextFrame([]byte(key))))
	if got, err := io.ReadAll(webSocket(t, key, string(sent))); len(got) > 0 || err == nil || !strings.Contains(err.Error(), "masked frame") {
		t.Errorf("%q, %v", got, err)
	}
}

// webSocket returns the end of a WebSocket whose provider sends some bytes.
func webSocket(t *testing.T, key, sent string) io.Reader {
	return sendThrough(t, key, &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: make(http.Header),
		Body: readWriteCloser{strings.NewReader(sent), io.Discard, http.NoBody}}).Body
}

// A header that repeats the key does not tell it, either.
func TestHeadersDoNotTellTheKey(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	resp := sendThrough(t, key, &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {"https://example.com/?key=" + key}}, Body: http.NoBody})
	if got := resp.Header.Get("Location"); got != "https://example.com/?key=*****************" {
		t.Error(got)
	}
}

// An answer without the key is read in place: it costs the buffer of small reads, and no copy.
func TestMaskingAllocatesNoCopies(t *testing.T) {
	body := bytes.Repeat([]byte("data: {}\n\n"), 10_000)
	chunk := make([]byte, 32<<10)
	allocations := testing.AllocsPerRun(100, func() {
		m := &maskedBody{body: bytes.NewReader(body), secret: []byte("sk-aaab-aaac-0123")}
		for {
			if _, err := m.Read(chunk); err != nil {
				break
			}
		}
	})
	if allocations > 3 {
		t.Errorf("%v allocations", allocations)
	}
}

func answerTo(t *testing.T, key string, status int, encoding string, body io.Reader) *http.Response {
	header := make(http.Header)
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
		header.Set("Content-Length", "100")
	}
	return sendThrough(t, key, &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(body)})
}

func sendThrough(t *testing.T, key string, answer *http.Response) *http.Response {
	a := &Account{key: key, standIn: "stand-in", Transport: NewTransport(roundTrip(func(*http.Request) (*http.Response, error) { return answer, nil }))}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", nil)
	resp, err := a.Send(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func encoded(t *testing.T, encoding, body string) io.Reader {
	if encoding == "" {
		return strings.NewReader(body)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

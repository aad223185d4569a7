package llmgateway

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// upload is a form with a file of these bytes.
func upload(t *testing.T, file string, fields ...string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", "speech.wav")
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	for i := 0; i < len(fields); i += 2 {
		if err == nil {
			err = w.WriteField(fields[i], fields[i+1])
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), b.String()
}

// What clients send to endpoints that nobody translates to, and what they get, are the
// bytes of the other side but for the name of the model, and the record has what the
// provider reported.
func TestEndpointsPassBytes(t *testing.T) {
	for _, c := range []struct {
		path, request, answer string
		usage                 plugins.Usage
	}{
		{"/v1/embeddings", `{"model":"%s", "input":"a"}`, `{"data":[ ],"usage":{"prompt_tokens":5}}`, plugins.Usage{Input: plugins.Known(5), Output: plugins.Known(0)}},
		{"/v1/moderations", `{"model":"%s", "input":"a"}`, `{"id":"m","results":[ ]}`, plugins.Usage{}},
		{"/v1/completions", `{"model":"%s", "prompt":"a"}`, `{"choices":[ ],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, plugins.Usage{Input: plugins.Known(5), Output: plugins.Known(2)}},
		{"/v1/images/generations", `{"model":"%s", "prompt":"a"}`, `{"data":[{"b64_json":"AA"}], "usage":{"input_tokens":5,"output_tokens":100}}`,
			plugins.Usage{Input: plugins.Known(5), Output: plugins.Known(100)}},
		{"/v1/images/edits", `{"model":"%s", "images":[{"image_url":"https://a.example"}]}`, `{"data":[{"url":"https://a.example"}]}`, plugins.Usage{Images: plugins.Known(1)}},
		{"/v1/audio/transcriptions", `{"model":"%s", "file":"AA"}`, `{"text":"hello","usage":{"type":"tokens","input_tokens":14,"output_tokens":5}}`,
			plugins.Usage{Input: plugins.Known(14), Output: plugins.Known(5)}},
		{"/v1/audio/speech", `{"model":"%s", "input":"a"}`, `{"audio_data":"AAAA"}`, plugins.Usage{}},
		{"/v1/rerank", `{"model":"%s", "query":"a","documents":["b"]}`, `{"results":[ ],"meta":{"billed_units":{"search_units":2}}}`, plugins.Usage{SearchUnits: plugins.Known(2)}},
		{"/v1/rerank/", `{"model":"%s", "query":"a","documents":["b"]}`, `{"data":[ ],"usage":{"total_tokens":26}}`, plugins.Usage{Input: plugins.Known(26), Output: plugins.Known(0)}},
	} {
		t.Run(c.path, func(t *testing.T) {
			var sent, path string
			s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, r *http.Request) {
				sent, path = readAndRestore(r), r.URL.Path
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, c.answer)
			}}})
			resp, body := s.postTo(c.path, strings.NewReader(fmt.Sprintf(c.request, "raw/m")))
			if resp.StatusCode != http.StatusOK || body != c.answer || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("the client got %d %s", resp.StatusCode, body)
			}
			if want := fmt.Sprintf(c.request, "m"); sent != want || path != strings.TrimSuffix(c.path[len("/v1"):], "/") {
				t.Errorf("the provider got %s at %s", sent, path)
			}
			r := s.kept.all()[0]
			if r.Usage != c.usage || r.Model != "m" || r.RequestModel != "raw/m" || r.Dialect != byPath[strings.TrimSuffix(c.path, "/")].methods["POST"].dialect ||
				r.EndState != storage.Complete || r.response != c.answer {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

// A file of a form is passed as it is, whatever is in it.
func TestForms(t *testing.T) {
	file := strings.Repeat("\x00\r\n--x\r\n", 1000) + "name=\"model\"\r\n\r\nother"
	for _, path := range []string{"/v1/audio/transcriptions", "/v1/audio/translations", "/v1/images/edits", "/v1/images/variations"} {
		answer := `{"text":"hello","data":[{"url":"https://a.example"}],"usage":{"type":"duration","seconds":3}}`
		var sent, kind string
		s := serve(t, map[string][]upstream{"raw": {status(500), func(w http.ResponseWriter, r *http.Request) {
			sent, kind = readAndRestore(r), r.Header.Get("Content-Type")
			if r.ContentLength != int64(len(sent)) {
				t.Errorf("%s: the length of %d is announced as %d", path, len(sent), r.ContentLength)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}}})
		contentType, body := upload(t, file, "model", "raw/m", "user", "ada", "empty", "")
		resp, got := s.postTo(path, strings.NewReader(body), "Content-Type", contentType)
		if resp.StatusCode != http.StatusOK || got != answer {
			t.Errorf("%s: the client got %d %s", path, resp.StatusCode, got)
		}
		if want := strings.Replace(body, "raw/m", "m", 1); sent != want || kind != contentType {
			t.Errorf("%s: the provider got %q of type %s", path, sent, kind)
		}
		if r := s.kept.all()[1]; r.UserID != "ada" || r.RequestModel != "raw/m" || r.RequestBytes != int64(len(body)) {
			t.Errorf("%s: the record is %+v", path, r)
		}
	}
}

func TestFormsThatAreNone(t *testing.T) {
	const good = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nraw/m\r\n--b--\r\n"
	for name, c := range map[string]struct{ contentType, body, want string }{
		"no boundary":       {"multipart/form-data", good, "no form either"},
		"another boundary":  {"multipart/form-data; boundary=c", good, "no form either"},
		"cut off":           {"multipart/form-data; boundary=b", good[:len(good)-6], "no form either"},
		"no head":           {"multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--b--", "no form either"},
		"too many parts":    {"multipart/form-data; boundary=b", strings.Repeat(strings.TrimSuffix(good, "--\r\n")+"\r\n", maxParts) + "--b--", "no form either"},
		"no model":          {"multipart/form-data; boundary=b", strings.Replace(good, "model", "other", 1), "Missing required parameter: 'model'."},
		"an empty model":    {"multipart/form-data; boundary=b", strings.Replace(good, "raw/m", "", 1), "Missing required parameter: 'model'."},
		"neither form, nor": {"text/plain", "hello", "no form either"},
	} {
		s := serve(t, nil)
		resp, body := s.postTo("/v1/audio/transcriptions", strings.NewReader(c.body), "Content-Type", c.contentType)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

// A transcript may be text, such as SubRip.
func TestTranscriptsAreText(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "1\n00:00 --> 00:01\nhello\n")
	}}})
	contentType, body := upload(t, "RIFF", "model", "raw/m", "response_format", "srt")
	resp, got := s.postTo("/v1/audio/transcriptions", strings.NewReader(body), "Content-Type", contentType)
	if got != "1\n00:00 --> 00:01\nhello\n" || resp.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("the client got %q of type %s", got, resp.Header.Get("Content-Type"))
	}
	if r := s.kept.all()[0]; r.Cost.Valid || r.response != got {
		t.Errorf("the record is %+v", r)
	}
}

// Audio passes as it comes, and its record stands before its end.
func TestSpeechStreams(t *testing.T) {
	audio := strings.Repeat("ID3\x00\xff", 20_000)
	first := make(chan bool)
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "audio/mpeg")
		_, _ = io.WriteString(w, audio[:50_000])
		_ = http.NewResponseController(w).Flush()
		<-first
		_, _ = io.WriteString(w, audio[50_000:])
	}}})
	r, err := http.NewRequest("POST", s.URL+"/v1/audio/speech", strings.NewReader(`{"model":"raw/m","input":"hi","voice":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	begin := make([]byte, 1000)
	if _, err := io.ReadFull(resp.Body, begin); err != nil {
		t.Fatal(err)
	}
	close(first)
	rest, err := io.ReadAll(resp.Body)
	if got := string(begin) + string(rest); err != nil || got != audio || resp.Header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("the client got %d bytes of type %s, %v", len(got), resp.Header.Get("Content-Type"), err)
	}
	if r := s.kept.all()[0]; r.EndState != storage.Complete || r.ResponseBytes != int64(len(audio)) || r.Cost.Valid || r.response != audio {
		t.Errorf("the record is %s with %d bytes", r.EndState, r.ResponseBytes)
	}
}

// A client must not take audio that broke off for all of it.
func TestSpeechBreaksOff(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "audio/mpeg")
		_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}}})
	r, err := http.NewRequest("POST", s.URL+"/v1/audio/speech", strings.NewReader(`{"model":"raw/m","input":"hi"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client took it for all")
	}
	if r := s.kept.all()[0]; r.EndState != storage.UpstreamAborted {
		t.Errorf("the record says %s", r.EndState)
	}
}

// A provider that lacks an endpoint is told of, and another one answers.
func TestProvidersWithoutTheEndpoint(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[]}`)
	}}})
	if resp, body := s.postTo("/v1/images/generations", strings.NewReader(`{"model":"one/m","prompt":"a"}`)); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, unsupportedEndpoint) {
		t.Errorf("one that lacks it: %d %s", resp.StatusCode, body)
	}
	if resp, body := s.postTo("/v1/images/generations", strings.NewReader(`{"model":"one/m,raw/m","prompt":"a"}`)); resp.StatusCode != http.StatusOK {
		t.Errorf("another that has it: %d %s", resp.StatusCode, body)
	}
}

// What a provider does not report is charged as the request tells, or as it was set aside.
func TestEndpointsArePaidFor(t *testing.T) {
	for _, c := range []struct {
		path, request, contentType, answer string
		cost                               float64 // in dollars
	}{
		{"/v1/images/generations", `{"model":"raw/paint","prompt":"abcd","n":2}`, "application/json", `{"data":[{},{}]}`, 0.08},
		{"/v1/rerank", `{"model":"raw/rank","query":"q","documents":["a"]}`, "application/json", `{"results":[]}`, 0.002},
		{"/v1/rerank", `{"model":"raw/rank","query":"q","documents":["a"]}`, "application/json", `{"results":[],"meta":{"billed_units":{"search_units":3}}}`, 0.006},
		// a long document counts as one for each 500 tokens
		{"/v1/rerank", `{"model":"raw/rank","query":"q","documents":["` + strings.Repeat("word", 50_000) + `"]}`, "application/json", `{"results":[]}`, 0.004},
		{"/v1/audio/transcriptions", "", "application/json", `{"text":"hello"}`, 24 * 0.36}, // of an unknown length
		{"/v1/audio/transcriptions", "", "application/json", `{"text":"hello","usage":{"seconds":72}}`, 0.0072},
	} {
		s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			_, _ = io.WriteString(w, c.answer)
		}}})
		s.grant(10_000)
		contentType, body := "application/json", c.request
		if body == "" {
			contentType, body = upload(t, strings.Repeat("x", 3000), "model", "raw/hear")
		}
		resp, got := s.postTo(c.path, strings.NewReader(body), "Authorization", "Bearer payer", "Content-Type", contentType)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", c.path, resp.StatusCode, got)
			continue
		}
		want := int64(c.cost*1e9 + 0.5)
		if b := s.account(); int64(b.Spent) != want || b.Reserved != 0 {
			t.Errorf("%s: the balance is %+v, want %d spent", c.path, b, want)
		}
		if r := s.kept.all()[0]; int64(r.Cost.N) != want || !r.PassthroughBilling {
			t.Errorf("%s: the record's cost is %v", c.path, r.Cost)
		}
	}
}

// A file whose bytes do not bound how long it is sets aside a day: silence in FLAC takes next
// to nothing, whatever its name is.
func TestAudioOfAnyLengthIsSetAside(t *testing.T) {
	s := serve(t, map[string][]upstream{"raw": {func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"text":"hello","usage":{"seconds":1}}`)
	}}})
	s.grant(1000)
	for file, want := range map[string]int{
		"fLaC" + strings.Repeat("x", 3000):                                http.StatusPaymentRequired,
		strings.Repeat("\xff\xfb\x90\x00"+strings.Repeat("\x00", 413), 4): http.StatusOK, // MP3
	} {
		contentType, body := upload(t, file, "model", "raw/hear")
		if resp, got := s.postTo("/v1/audio/transcriptions", strings.NewReader(body), "Authorization", "Bearer payer", "Content-Type", contentType); resp.StatusCode != want {
			t.Errorf("%.4q: %d %s", file, resp.StatusCode, got)
		}
	}
}

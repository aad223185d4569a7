package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hashes are the asset ids of what media hold.
func hashes(media ...string) []string {
	var ids []string
	for _, m := range media {
		sum := sha256.Sum256([]byte(m))
		ids = append(ids, hex.EncodeToString(sum[:]))
	}
	return ids
}

func TestAssets(t *testing.T) {
	// aGk/aGk_ is base64 of "hi?hi?", in the alphabets of MIME and of URLs.
	for _, c := range []struct {
		name    string
		request string
		want    []string
	}{
		{"chat", `{"messages":[{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"https://a/b.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"input_audio","input_audio":{"data":"eW8=","format":"wav"}},{"type":"file","file":{"filename":"f","file_data":"data:application/pdf;base64,aGk/"}}]}]}`,
			hashes("https://a/b.png", "hi", "yo", "hi?")},
		{"responses", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aGk"},{"type":"input_file","file_url":"https://a/f.pdf"},{"type":"input_image","file_id":"file-1"}]},{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,eW8="}}]}`,
			hashes("hi", "https://a/f.pdf", "yo")},
		{"messages", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"document","source":{"type":"url","url":"https://a/f.pdf"}},{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","data":"eW8="}}]}]}]}`,
			hashes("hi", "https://a/f.pdf", "yo")},
		{"generate_content", `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"aGk_"}},{"inline_data":{"data":"eW8="}},{"fileData":{"fileUri":"gs://a/b"}},{"file_data":{"file_uri":"gs://a/c"}}]}]}`,
			hashes("hi?", "yo", "gs://a/b", "gs://a/c")},
		{"converse", `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"aGk="}}},{"document":{"name":"d","source":{"s3Location":{"uri":"s3://a/b"}}}}]}]}`,
			hashes("hi", "s3://a/b")},
		{"ollama", `{"messages":[{"role":"user","content":"t","images":["aGk=","eW8="]}]}`, hashes("hi", "yo")},
		{"ollama generate", `{"prompt":"t","images":["aGk="]}`, hashes("hi")},
		{"each once", `{"input":[{"content":[{"image_url":"u"},{"image_url":"v"},{"image_url":"u"}]}]}`, hashes("u", "v")},
		{"a data: URL without base64", `{"input":[{"content":[{"file_data":"data:text/plain,a%20b"}]}]}`, hashes("a b")},
		{"no media in tools and calls", `{"tools":[{"parameters":{"image_url":"https://a"}}],"messages":[{"content":[{"type":"tool_use","input":{"image_url":"https://a"}}]}]}`, nil},
		{"no JSON", `image_url`, nil},
		{"nothing", ``, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Assets([]byte(c.request)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAssetsAreTheFirstHundred(t *testing.T) {
	var parts, urls []string
	for i := range 150 {
		url := fmt.Sprintf("https://a/%d", i)
		urls = append(urls, url)
		parts = append(parts, fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, url))
	}
	request := `{"messages":[{"content":[` + strings.Join(parts, ",") + `]}]}`
	if got := Assets([]byte(request)); !slices.Equal(got, hashes(urls[:100]...)) {
		t.Errorf("got %d assets %q", len(got), got)
	}
}

func FuzzAssets(f *testing.F) {
	f.Add([]byte(`{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,aGk="}}],"images":["aGk"]}]}`))
	f.Add([]byte(`{"input":[{"output":{"image_url":"data:,%"}}],"contents":{"parts":[{"inlineData":{"data":"_-"}}]}}`))
	f.Fuzz(func(t *testing.T, request []byte) {
		ids := Assets(request)
		if len(ids) > maxAssets {
			t.Fatalf("%d assets", len(ids))
		}
		for i, id := range ids {
			if raw, err := hex.DecodeString(id); err != nil || len(raw) != sha256.Size {
				t.Errorf("%q is no SHA-256", id)
			}
			if slices.Contains(ids[:i], id) {
				t.Errorf("duplicate id %s", id)
			}
		}
	})
}

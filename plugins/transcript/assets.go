package transcript

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// maxAssets is how many assets of a request are named.
const maxAssets = 100

// media are the keys of a part that hold an image, audio, video or file.
var media = map[string]bool{
	"image_url": true, "audio_url": true, "video_url": true, "document_url": true, // Chat, Cohere, Mistral
	"input_audio": true, "file": true, // Chat
	"file_data": true, "file_url": true, // Responses
	"source":     true,                                        // Messages
	"inlineData": true, "inline_data": true, "fileData": true, // GenerateContent
	"image": true, "audio": true, "video": true, "document": true, // Converse
	"images": true, // Ollama
}

// references are the keys in a medium that lead to its bytes or its URL.
var references = map[string]bool{
	"url": true, "data": true, "file_data": true, "fileUri": true, "file_uri": true,
	"source": true, "bytes": true, "s3Location": true, "uri": true,
}

// Assets names the images, audio, video and files in a request, each by the lower-case hex
// SHA-256 of its bytes, or of its URL if the request has no bytes: each once, in document
// order, the first 100.
func Assets(request []byte) []string {
	var assets []string
	add := func(medium string) {
		if len(assets) == maxAssets {
			return
		}
		if id := assetID(medium); !slices.Contains(assets, id) {
			assets = append(assets, id)
		}
	}
	gjson.ParseBytes(request).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "messages", "input", "contents", "system":
			eachPart(value, 0, func(part gjson.Result) {
				part.ForEach(func(key, value gjson.Result) bool {
					if media[key.Str] {
						eachMedium(value, 0, add)
					}
					return true
				})
			})
		case "images": // Ollama's /api/generate
			eachMedium(value, 0, add)
		}
		return len(assets) < maxAssets
	})
	return assets
}

// eachMedium calls do with the base64, the data: URL or the URL of each medium
// in v.
func eachMedium(v gjson.Result, depth int, do func(medium string)) {
	switch {
	case depth > deepestPart:
	case v.Type == gjson.String && v.Str != "":
		do(v.Str)
	case v.Type == gjson.JSON:
		all := v.IsArray()
		v.ForEach(func(key, value gjson.Result) bool {
			if all || references[key.Str] {
				eachMedium(value, depth+1, do)
			}
			return true
		})
	}
}

// assetID returns the hash of a medium: of the bytes of base64 or of a data: URL, otherwise of
// the text itself.
func assetID(medium string) string {
	h := sha256.New()
	data, isData := strings.CutPrefix(medium, "data:")
	if isData {
		mediaType, content, _ := strings.Cut(data, ",")
		data = content
		if !strings.HasSuffix(mediaType, ";base64") {
			if unescaped, err := url.PathUnescape(data); err == nil {
				data = unescaped
			}
			_, _ = io.WriteString(h, data) // a hash takes everything
			return hex.EncodeToString(h.Sum(nil))
		}
	}
	if _, err := io.Copy(h, decodeBase64(data)); err != nil {
		h.Reset()
		_, _ = io.WriteString(h, medium)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// decodeBase64 reads both alphabets, with padding and without.
func decodeBase64(data string) io.Reader {
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(data, "-_") {
		encoding = base64.RawURLEncoding
	}
	return base64.NewDecoder(encoding, strings.NewReader(strings.TrimRight(data, "=\r\n")))
}

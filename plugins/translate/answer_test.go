package translate

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// llama.cpp sends the error of a stream in a field that the specification does not have.
func TestReadAnswerTakesErrorLines(t *testing.T) {
	resp := &http.Response{Header: http.Header{}, Body: io.NopCloser(strings.NewReader("data: 1\n\nerror: {\"message\":\"x\"}\n\n"))}
	var got []string
	a := NewAssembler(&Request{Model: "m", Stream: true}, io.Discard, Options{})
	err := ReadAnswer(resp, a, nil, func(name, data []byte) bool {
		got = append(got, string(name)+"|"+string(data))
		return true
	})
	if want := `|1 error|{"message":"x"}`; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

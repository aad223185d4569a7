package llmgateway

import (
	"bytes"
	"io"
)

// maxPreallocated is how much memory an announced length can claim before the
// body has come, in bytes.
const maxPreallocated = 1 << 20

// readAll is io.ReadAll of a body whose Content-Length is announced, or -1.
func readAll(r io.Reader, announced int64) ([]byte, error) {
	room := min(max(announced, 0), maxPreallocated)
	b := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead)) // which ReadFrom needs to see the end
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

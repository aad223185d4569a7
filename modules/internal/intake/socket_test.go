package intake

import (
	"bytes"
	"errors"
	"net"
	"testing"

	"github.com/gobwas/ws"

	"github.com/weirhq/weir/modules/internal/admission"
)

// A client whose close is malformed gets one close, by RFC 6455, section 5.5.1.
func TestAMalformedCloseIsAnsweredOnce(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	noStatus := ws.NewCloseFrameBody(ws.StatusNoStatusRcvd, "")
	in := bytes.NewReader(ws.MustCompileFrame(ws.MaskFrame(ws.NewCloseFrame(noStatus))))
	var out bytes.Buffer
	_, err := Reader{Memory: admission.NewMemory(1 << 20), Limit: 1 << 10}.Socket(server, in, &out).Next(t.Context())
	if _, again := errors.AsType[*ClosingError](err); err == nil || again {
		t.Errorf("%v, want an error that needs no further close", err)
	}
	if header, err := ws.ReadHeader(&out); err != nil || header.OpCode != ws.OpClose || int64(out.Len()) != header.Length {
		t.Errorf("%+v and %d bytes, %v", header, out.Len(), err)
	}
}

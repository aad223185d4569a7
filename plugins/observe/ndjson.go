package observe

import "bytes"

// ndjson splits newline-delimited JSON, one event a line.
type ndjson struct{ to stream }

func (n *ndjson) write(p []byte) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			n.to.data(p)
			return
		}
		n.to.data(p[:end])
		n.to.dispatch(nil)
		p = p[end+1:]
	}
}

func (n *ndjson) close() { n.to.dispatch(nil) }

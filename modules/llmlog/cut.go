package llmlog

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
)

// pass hands the call on. A stream that a budget ends has ended well, whatever becomes of the
// connection to the provider.
func (x *exchange) pass(next caddyhttp.Handler) (err error) {
	if x.rec.Bill == nil || x.rec.Bill.CutAt == 0 {
		return next.ServeHTTP(&x.writer, x.r)
	}
	x.r.Header["Accept-Encoding"] = []string{"identity"} // or the stream could not be read
	x.cutter = cut.NewWriter(&x.writer, x.rec.Record.Dialect, x.rec.Bill.CutAt*bound.UpperBound.TextBytes, x.cancel)
	defer func() {
		if !x.cutter.Over() {
			return
		}
		if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // reverse_proxy's way to abort
			panic(v)
		}
		err = nil
	}()
	err = next.ServeHTTP(x.cutter, x.r)
	x.cutter.Close()
	return err
}

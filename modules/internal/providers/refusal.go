package providers

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// IsPlatformAccountError reports whether e is about the platform's account: the provider rejects its key,
// or its money is spent. No caller may see such an error. A 401 is always about the account; a 403 is,
// unless it refuses the content of the request. status is the response's HTTP status.
func (a *Account) IsPlatformAccountError(e *plugins.Error, status int) bool {
	if !a.Platform {
		return false
	}
	means := func(code int) bool { return status == code || e.Status == code } // Gemini answers 400 and means 401
	return e.EmptyAccount() || means(http.StatusUnauthorized) || means(http.StatusForbidden) && !e.CallersFault()
}

// PeekError returns the error in a response, or nil if its status is below 400. The body can still be
// read from its first byte.
func (a *Account) PeekError(resp *http.Response) *plugins.Error {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	var peeked bytes.Buffer
	body, copied := resp.Body, *resp
	copied.Body = readCloser{io.TeeReader(body, &peeked), body}
	e := a.API.Error(&copied)
	resp.Body = readCloser{io.MultiReader(&peeked, body), body}
	return e
}

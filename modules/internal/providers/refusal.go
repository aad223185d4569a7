package providers

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// IsPlatformsFault reports whether a provider's error is about the platform's account: the provider does not
// accept its key, or nothing is left of its money. No caller gets such an error. A 401 is always about the
// account, and a 403 unless it refuses the content of a request. status is that of the answer.
func (a *Account) IsPlatformsFault(e *plugins.Error, status int) bool {
	either := func(code int) bool { return status == code || e.Status == code } // Gemini answers 400 and means 401
	return a.Platform && (e.EmptyAccount() || either(http.StatusUnauthorized) || either(http.StatusForbidden) && !e.CallersFault())
}

// StatedError returns the error that an answer states, nil for a status below 400. The answer can be read
// as before.
func (a *Account) StatedError(resp *http.Response) *plugins.Error {
	if resp.StatusCode < http.StatusBadRequest {
		return nil
	}
	var read bytes.Buffer
	body, stating := resp.Body, *resp
	stating.Body = readCloser{io.TeeReader(body, &read), body}
	e := a.API.Error(&stating)
	resp.Body = readCloser{io.MultiReader(&read, body), body}
	return e
}

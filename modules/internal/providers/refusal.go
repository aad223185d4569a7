package providers

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// IsPlatformsFault reports whether a provider's error is about the platform's account: the provider does not
// accept its key, or nothing is left of its money. No caller gets such an error. status is that of the answer.
func (a *Account) IsPlatformsFault(e *plugins.Error, status int) bool {
	return a.Platform && (e.EmptyAccount() || (unauthorized(status) || unauthorized(e.Status)) && !e.CallersFault())
}

// unauthorized reports whether a status refuses a key. Where Gemini answers 400 and means 401,
// its plugin corrects the status.
func unauthorized(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
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

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// API is where a provider says what it billed, with a key that may read it.
type API struct {
	// URL is the address of the provider, "" for the provider's own.
	URL string
	Key string
}

// The bounds of a bill: of a page and of all pages in bytes, and of all lines of usage and costs. A
// month of 1,000 keys that use ten models each has 310,000 lines.
const (
	maxPage  = 64 << 20
	maxBytes = 256 << 20
	maxLines = 500_000
)

// errTooLarge is the error for a bill above its bounds.
var errTooLarge = fmt.Errorf("the bill has more than %d lines or %d bytes: compare fewer days", maxLines, maxBytes)

// maxMessage bounds what an error repeats of a provider's refusal, in bytes.
const maxMessage = 500

// reading reads the pages of one bill.
type reading struct {
	API
	bytes, count int // of the pages, and of the pages and lines, so far
}

// client follows no redirect, because the key goes to the provider alone.
var client = &http.Client{
	Timeout:       2 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// The bounds of waiting for a provider that answers 429: how often it is asked, how long each wait
// is at least, and how long a wait may be that the provider names.
const (
	maxTries = 5
	minWait  = time.Second
	maxWait  = time.Minute
)

// get reads an answer in JSON. A provider that is asked too often is asked again after the time it
// names, or else after a time that doubles with each try.
func (a *reading) get(ctx context.Context, path string, query url.Values, header http.Header) (answer gjson.Result, err error) {
	for tries := 1; ; tries++ {
		answer, err = a.ask(ctx, path, query, header)
		refused, ok := errors.AsType[*refusedError](err)
		if !ok || refused.status != http.StatusTooManyRequests || tries == maxTries || refused.retryAfter > maxWait {
			return answer, err
		}
		wait := refused.retryAfter
		if wait == 0 {
			wait = minWait << (tries - 1)
		}
		select {
		case <-time.After(max(wait, minWait)):
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
}

// address is where a path is, with the user and the password that the URL may have.
func (a API) address(path string) string { return strings.TrimSuffix(a.URL, "/") + path }

// refusedError is the error for an answer other than 200.
type refusedError struct {
	error
	status     int
	retryAfter time.Duration // 0 if the provider does not say
}

// ask asks once. The error is a *refusedError for an answer other than 200.
func (a *reading) ask(ctx context.Context, path string, query url.Values, header http.Header) (gjson.Result, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.address(path)+"?"+query.Encode(), nil)
	address := plugins.RedactURL(a.address(path))
	if err != nil { // it may quote a password
		return gjson.Result{}, fmt.Errorf("%s: want an address of the provider like https://api.example.com", address)
	}
	r.Header = header
	response, err := client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok { // without the query
		return gjson.Result{}, fmt.Errorf("%s does not answer: %w", address, failed.Err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	a.bytes, a.count = a.bytes+len(text), a.count+1
	switch {
	case err != nil:
		return gjson.Result{}, fmt.Errorf("%s: %w", address, err)
	case len(text) > maxPage:
		return gjson.Result{}, fmt.Errorf("%s: the answer has more than %d bytes", address, maxPage)
	case a.bytes > maxBytes, a.count > maxLines:
		return gjson.Result{}, fmt.Errorf("%s: %w", address, errTooLarge)
	case response.StatusCode != http.StatusOK:
		return gjson.Result{}, &refusedError{a.refusal(address, response, text), response.StatusCode, plugins.RetryAfter(response.Header)}
	case !plugins.ValidJSON(text):
		return gjson.Result{}, fmt.Errorf("%s: the answer is not JSON", address)
	}
	return gjson.ParseBytes(text), nil
}

func (a API) refusal(address string, response *http.Response, text []byte) error {
	hint := ""
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "; the key must be one of an administrator, which keys for calls are not"
	case http.StatusTooManyRequests:
		hint = "; try again in a minute"
	}
	message := ""
	if plugins.ValidJSON(text) {
		for _, path := range []string{"error.message", "message", "error"} {
			if m := gjson.GetBytes(text, path); m.Type == gjson.String {
				message = strings.ReplaceAll(m.Str, a.Key, "…")
				message = ": " + strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
				break
			}
		}
	}
	return fmt.Errorf("%s answered %s%s%s", address, response.Status, message, hint)
}

// buckets calls each with the results of each day of all pages. day reads the day of a bucket.
func (a *reading) buckets(ctx context.Context, path string, query url.Values, header http.Header, day func(gjson.Result) (Day, error), each func(Day, gjson.Result) error) error {
	address := plugins.RedactURL(a.address(path))
	for seen := make(map[string]bool); ; {
		page, err := a.get(ctx, path, query, header)
		if err != nil {
			return err
		}
		if !page.Get("data").IsArray() {
			return fmt.Errorf("%s: the answer has no data", address)
		}
		err = a.lines(page.Get("data"), func(bucket gjson.Result) error {
			d, err := day(bucket)
			if err != nil {
				return err
			}
			return a.lines(bucket.Get("results"), func(result gjson.Result) error {
				if err := each(d, result); err != nil {
					return fmt.Errorf("%s: %w", d, err)
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", address, err)
		}
		next := page.Get("next_page").Str
		if !page.Get("has_more").Bool() {
			return nil
		}
		if next == "" || seen[next] {
			return fmt.Errorf("%s: %w", address, errNoNextPage)
		}
		seen[next] = true
		query.Set("page", next)
	}
}

var errNoNextPage = errors.New("the answer has more pages and names none that has not been read")

// lines calls each with the elements of a list. Each is a line of the bill.
func (a *reading) lines(list gjson.Result, each func(gjson.Result) error) (err error) {
	if list.Type == gjson.Null {
		return nil
	}
	if !list.IsArray() {
		return fmt.Errorf("expected a list, not %.100s", list.Raw)
	}
	list.ForEach(func(_, line gjson.Result) bool {
		if a.count++; a.count > maxLines {
			err = errTooLarge
		} else {
			err = each(line)
		}
		return err == nil
	})
	return err
}

// counts reads whole numbers of a result, which may be missing.
func counts(result gjson.Result, names ...string) ([]int64, error) {
	numbers := make([]int64, len(names))
	for i, name := range names {
		value := result.Get(name)
		if value.Type == gjson.Null {
			continue
		}
		if n := value.Int(); value.Type == gjson.Number && float64(n) == value.Num && n >= 0 {
			numbers[i] = n
			continue
		}
		return nil, fmt.Errorf("%s: expected a count, not %s", name, value.Raw)
	}
	return numbers, nil
}

// dollars checks the currency of an amount. An amount without one is in US dollars.
func dollars(currency string) error {
	if currency != "" && !strings.EqualFold(currency, "USD") {
		return fmt.Errorf("the bill is in %s; only bills in USD can be compared", currency)
	}
	return nil
}

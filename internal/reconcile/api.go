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

// maxPage is the largest page that is read, in bytes.
const maxPage = 64 << 20

// client follows no redirect, because the key goes to the provider alone.
var client = &http.Client{
	Timeout:       2 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// get reads an answer in JSON.
func (a API) get(ctx context.Context, path string, query url.Values, header http.Header) (gjson.Result, error) {
	address := strings.TrimSuffix(a.URL, "/") + path
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"?"+query.Encode(), nil)
	if err != nil {
		return gjson.Result{}, err
	}
	r.Header = header
	response, err := client.Do(r)
	if err != nil {
		return gjson.Result{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxPage+1))
	switch {
	case err != nil:
		return gjson.Result{}, fmt.Errorf("%s: %w", address, err)
	case len(text) > maxPage:
		return gjson.Result{}, fmt.Errorf("%s: the answer has more than %d bytes", address, maxPage)
	case response.StatusCode != http.StatusOK:
		return gjson.Result{}, a.refusal(address, response, text)
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
				message = ": " + strings.ReplaceAll(m.Str, a.Key, "…")
				break
			}
		}
	}
	return fmt.Errorf("%s answered %s%s%s", address, response.Status, message, hint)
}

// buckets calls each with the results of each day of all pages. day reads the day of a bucket.
func (a API) buckets(ctx context.Context, path string, query url.Values, header http.Header, day func(gjson.Result) (Day, error), each func(Day, gjson.Result) error) error {
	for {
		page, err := a.get(ctx, path, query, header)
		if err != nil {
			return err
		}
		if !page.Get("data").IsArray() {
			return fmt.Errorf("%s%s: the answer has no data", a.URL, path)
		}
		for _, bucket := range page.Get("data").Array() {
			d, err := day(bucket)
			if err != nil {
				return fmt.Errorf("%s%s: %w", a.URL, path, err)
			}
			for _, result := range bucket.Get("results").Array() {
				if err := each(d, result); err != nil {
					return fmt.Errorf("%s%s: %s: %w", a.URL, path, d, err)
				}
			}
		}
		next := page.Get("next_page").Str
		if !page.Get("has_more").Bool() {
			return nil
		}
		if next == "" || next == query.Get("page") {
			return fmt.Errorf("%s%s: %w", a.URL, path, errNoNextPage)
		}
		query.Set("page", next)
	}
}

var errNoNextPage = errors.New("the answer has more pages and does not name the next one")

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

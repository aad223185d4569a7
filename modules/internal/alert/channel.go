package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// Channel is where messages go. Only the configuration makes channels, so that nobody who makes
// rules chooses what address Weir calls.
type Channel struct {
	// Name is unique in the organisation.
	Name string `json:"name"`

	// Kind is `webhook`, `slack`, `teams`, `pagerduty` or `email`.
	Kind string `json:"kind"`

	// Address is the URL of a webhook, of Slack's incoming webhook, or of a workflow of Teams; the
	// integration key of a PagerDuty service; or an email address, several separated by commas.
	// Best use a placeholder like `{env.SLACK_URL}`: who has it can send messages.
	Address string `json:"address"`

	// Secrets sign the messages to a webhook, as `whsec_` and base64 of 24 to 64 bytes
	// (https://www.standardwebhooks.com). While a secret is replaced there are two.
	Secrets []string `json:"secrets,omitempty"`

	// URL is where PagerDuty takes events. Default: `https://events.pagerduty.com/v2/enqueue`.
	URL string `json:"url,omitempty"`

	// SMTP is the server that takes mail, as `host:port`. Port 465 begins with TLS. On other
	// ports TLS begins by STARTTLS, which User requires.
	SMTP string `json:"smtp,omitempty"`

	// From is the sender of mail. User and Password log in to the server.
	From     string `json:"from,omitempty"`
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`

	// send sends a message. Its error may have secrets that the receiver repeats.
	send func(context.Context, message) error
}

// Kinds are the kinds of channels.
var Kinds = []string{"webhook", "slack", "teams", "pagerduty", "email"}

// Provision expands placeholders and checks the channel.
func (c *Channel) Provision() error {
	if err := checkName(c.Name); err != nil {
		return fmt.Errorf("a channel %w", err)
	}
	repl := caddy.NewReplacer()
	for _, text := range []*string{&c.Address, &c.URL, &c.SMTP, &c.From, &c.User, &c.Password} {
		*text = repl.ReplaceAll(*text, "")
	}
	c.Secrets = slices.Clone(c.Secrets)
	for i := range c.Secrets {
		c.Secrets[i] = repl.ReplaceAll(c.Secrets[i], "")
	}
	if err := c.provision(); err != nil {
		return fmt.Errorf("channel %s: %w", c.Name, err)
	}
	return nil
}

func (c *Channel) provision() error {
	if c.Address == "" {
		return errors.New("its address is empty: is the environment variable of a placeholder set?")
	}
	if c.Kind != "webhook" && len(c.Secrets) > 0 {
		return errors.New("secret is for webhooks alone")
	}
	if c.Kind != "email" && (c.SMTP != "" || c.From != "" || c.User != "" || c.Password != "") {
		return errors.New("smtp, from, user and password are for email alone")
	}
	if c.Kind != "pagerduty" && c.URL != "" {
		return errors.New("url is for pagerduty alone")
	}
	switch c.Kind {
	case "webhook":
		return c.provisionWebhook()
	case "slack":
		c.send = c.sendSlack
		return checkURL(c.Address)
	case "teams":
		c.send = c.sendTeams
		return checkURL(c.Address)
	case "pagerduty":
		c.send = c.sendPagerDuty
		if c.URL == "" {
			c.URL = pagerDutyURL
		}
		return checkURL(c.URL)
	case "email":
		return c.provisionEmail()
	}
	return fmt.Errorf("its kind is one of %s, not %q", strings.Join(Kinds, ", "), c.Kind)
}

// checkURL checks an address without repeating it: it may be a secret.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("its address is no URL that begins with https:// or http://")
	}
	return nil
}

// client follows no redirect: it would carry a message to an address that nobody configured.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// post sends JSON. An answer other than 2xx is an error, with the beginning of what it says.
func post(ctx context.Context, address string, body []byte, header http.Header) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return errors.New("its address is no URL")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Weir")
	response, err := client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err // the rest repeats the address
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 2 {
		return nil
	}
	text := make([]byte, 4*maxError)
	n, _ := io.ReadFull(response.Body, text)
	return fmt.Errorf("it answered %s: %s", response.Status, strings.TrimSpace(string(text[:n])))
}

// maxError bounds what is kept of the error of an attempt, in bytes.
const maxError = 200

// minSecretPart is the length of a segment of a path from which on it is taken for a secret, in bytes.
const minSecretPart = 16

// withoutBeginning cuts the beginning of a secret off the end of a text: an answer is read to a length,
// which may be within it. Less than 4 bytes of a secret tell nothing.
func withoutBeginning(text, secret string) string {
	for n := min(len(secret), len(text)); n >= 4; n-- {
		if strings.HasSuffix(text, secret[:n]) {
			return text[:len(text)-n]
		}
	}
	return text
}

// redact leaves out of the error of an attempt what receivers repeat: many name the path that they
// do not know, and the path of a webhook is a secret.
func (c *Channel) redact(text string) string {
	secrets := append(slices.Clone(c.Secrets), c.Password)
	if c.Kind != "email" {
		secrets = append(secrets, c.Address)
		if u, err := url.Parse(c.Address); err == nil {
			secrets = append(secrets, u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery)
			for part := range strings.SplitSeq(u.EscapedPath()+"/"+u.Path, "/") {
				if len(part) >= minSecretPart {
					secrets = append(secrets, part)
				}
			}
		}
	}
	for _, secret := range secrets {
		if len(secret) <= len("/") {
			continue
		}
		for _, form := range []string{secret, strings.ReplaceAll(secret, "/", `\/`)} { // some encoders of JSON escape it
			text = strings.ReplaceAll(text, form, "[redacted]")
			text = withoutBeginning(text, form)
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// postJSON is post for a value.
func postJSON(ctx context.Context, address string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return post(ctx, address, body, nil)
}

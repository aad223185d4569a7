package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// provisionWebhook checks the secrets.
func (c *Channel) provisionWebhook() error {
	keys := make([][]byte, len(c.Secrets))
	for i, secret := range c.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < 24 || len(key) > 64 {
			return errors.New("a secret is `whsec_` and base64 of 24 to 64 bytes, such as that of `echo whsec_$(openssl rand -base64 32)`")
		}
		keys[i] = key
	}
	if len(keys) == 0 {
		return errors.New("a webhook takes a secret, which signs its messages, such as that of `echo whsec_$(openssl rand -base64 32)`")
	}
	c.send = func(ctx context.Context, m message) error { return c.sendWebhook(ctx, m, keys) }
	return checkURL(c.Address)
}

// event is the body of a webhook, with the members that Standard Webhooks recommends.
type event struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      eventData `json:"data"`
}

type eventData struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Org   string `json:"organization"`
	Rule  string `json:"rule"`
	// Per and Subject are null for an alert about all calls.
	Per        *string            `json:"per"`
	Subject    *string            `json:"subject"`
	Condition  string             `json:"condition"`
	Value      float64            `json:"value"`
	FiredAt    storage.Timestamp  `json:"fired_at"`
	ResolvedAt *storage.Timestamp `json:"resolved_at"`
}

// data is what a message tells. A message that is sent again is the same.
func (m *message) data() eventData {
	d := eventData{
		ID: m.Firing.ID, State: m.State, Org: m.Org, Rule: m.Rule, Condition: m.Condition, Value: m.Value, FiredAt: m.FiredAt,
	}
	if m.State != control.StateFiring {
		d.ResolvedAt = m.ResolvedAt
	}
	if m.Per != "" {
		d.Per, d.Subject = &m.Per, &m.Subject
	}
	return d
}

func (c *Channel) sendWebhook(ctx context.Context, m message, keys [][]byte) error {
	at := m.FiredAt
	if m.State != control.StateFiring && m.ResolvedAt != nil {
		at = *m.ResolvedAt
	}
	body, err := json.Marshal(event{"alert." + m.State, at.Time(), m.data()})
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	var signatures []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(m.Delivery.ID + "." + stamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return post(ctx, c.Address, body, http.Header{
		"Webhook-Id": {m.Delivery.ID}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {strings.Join(signatures, " ")},
	})
}

package llmquery_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

func init() {
	caddy.RegisterModule(&slowStorage{})
	caddy.RegisterModule(&brokenStorage{})
}

// troubled is a backend that answers nothing but what trouble says.
type troubled struct {
	storagetest.Memory
	trouble func(context.Context) error
}

func (b *troubled) Requests(ctx context.Context, _ *storage.RequestQuery) ([]*storage.Record, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Request(ctx context.Context, _ string, _ uuid.UUID) (*storage.Record, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Users(ctx context.Context, _ *storage.UserQuery) (*storage.UserPage, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) UserOverview(ctx context.Context, _ *storage.UserOverviewQuery) (*storage.UserOverview, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Sessions(ctx context.Context, _ *storage.SessionQuery) ([]storage.Session, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) SessionMetrics(ctx context.Context, _ *storage.SessionMetricsQuery) (*storage.SessionMetrics, error) {
	return nil, b.trouble(ctx)
}

func (b *troubled) Scores(ctx context.Context, _ *storage.ScoreQuery) ([]storage.ScorePoint, error) {
	return nil, b.trouble(ctx)
}

// slowStorage is a backend whose queries outlast every deadline.
type slowStorage struct {
	Path string `json:"dir,omitempty"`
}

func (*slowStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.storage.slow", New: func() caddy.Module { return new(slowStorage) }}
}

func (s *slowStorage) Key() string { return "slow:" + s.Path }
func (s *slowStorage) Dir() string { return s.Path }
func (*slowStorage) Backend() storage.Backend {
	return &troubled{trouble: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// brokenStorage is a backend whose queries fail.
type brokenStorage struct {
	Path string `json:"dir,omitempty"`
}

func (*brokenStorage) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "llm.storage.broken", New: func() caddy.Module { return new(brokenStorage) }}
}

func (s *brokenStorage) Key() string { return "broken:" + s.Path }
func (s *brokenStorage) Dir() string { return s.Path }
func (*brokenStorage) Backend() storage.Backend {
	return &troubled{trouble: func(context.Context) error { return errors.New("the disk is on fire") }}
}

func TestTrouble(t *testing.T) {
	s := newSite(t)
	response, answer := s.do("POST", "/slow"+bulk, "slow", `{"filter":"all"}`)
	if message := answer.Get("error").String(); response.StatusCode != http.StatusGatewayTimeout || !strings.Contains(message, "10ms") {
		t.Errorf("a slow backend: %d %s", response.StatusCode, message)
	}
	response, answer = s.do("POST", "/broken"+bulk, "broken", `{"filter":"all"}`)
	message := answer.Get("error").String()
	if response.StatusCode != http.StatusInternalServerError || strings.Contains(message, "fire") || !strings.Contains(message, "reference") {
		t.Errorf("a broken backend: %d %s", response.StatusCode, message)
	}
}

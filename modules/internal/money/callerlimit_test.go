package money

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Callers make up as many policies and values as they like. What is kept of them is bounded,
// for each organisation by itself.
func TestAccountsOfCallers(t *testing.T) {
	m := newBudgets(t)
	count := func(org, user string) error {
		limit, refused := CallerLimit(org, "5;w=31536000;s=user")
		if refused != nil {
			t.Fatal(refused)
		}
		_, err := m.holdsFor(&Spending{Org: org, Limit: limit, Record: &storage.Record{UserID: user, CreatedAt: storage.Millis(time.Now())}})
		return err
	}
	for i := range maxCallerAccounts {
		if err := count("acme", strconv.Itoa(i)); err != nil {
			t.Fatalf("account %d: %v", i, err)
		}
	}
	if refused, ok := count("acme", "one more").(*plugins.Error); !ok || refused.Status != http.StatusTooManyRequests { //nolint:errorlint // as it is returned
		t.Errorf("one more: %v", refused)
	}
	if err := count("acme", "7"); err != nil {
		t.Errorf("one that is there: %v", err)
	}
	if err := count("globex", "a"); err != nil {
		t.Errorf("another organisation: %v", err)
	}
}

package llmgateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
)

// account is one that no other test has seen.
func account(t *testing.T, label string) target {
	a := &llmapp.Account{Label: label}
	copy(a.ID[:], t.Name()+"/"+label)
	healths.Delete(a.ID)
	return target{account: a, model: "m"}
}

// play runs a policy over targets whose attempts end as a script says, and
// returns which were made when.
func play(ctx context.Context, p policy, targets []target, script map[string][]failure) (attempts string, answered bool) {
	start := time.Now()
	var made []string
	_, answered = p.run(ctx, targets, func(t target, n int) *failure {
		label := t.account.Label
		made = append(made, fmt.Sprintf("%s@%s", label, time.Since(start).Round(time.Second)))
		if len(script[label]) == 0 {
			return nil
		}
		f := script[label][0]
		script[label] = script[label][1:]
		f.target = t
		return &f
	})
	return strings.Join(made, " "), answered
}

func fails(n next, status int, retryAfter time.Duration) failure {
	return failure{next: n, err: &plugins.Error{Status: status, RetryAfter: retryAfter}}
}

func TestAttempts(t *testing.T) {
	standard := policy{retries: 1, tryDuration: time.Minute}
	for name, c := range map[string]struct {
		policy   policy
		script   map[string][]failure
		want     string
		answered bool
	}{
		"the first answers":    {standard, nil, "a@0s", true},
		"a retry answers":      {standard, map[string][]failure{"a": {fails(again, 500, 0)}}, "a@0s a@0s", true},
		"the next answers":     {standard, map[string][]failure{"a": {fails(again, 500, 0), fails(again, 500, 0)}}, "a@0s a@0s b@0s", true},
		"only elsewhere":       {standard, map[string][]failure{"a": {fails(elsewhere, 502, 0)}}, "a@0s b@0s", true},
		"the client's fault":   {standard, map[string][]failure{"a": {fails(giveUp, 400, 0)}}, "a@0s", false},
		"a wait asked for":     {standard, map[string][]failure{"a": {fails(again, 429, 20*time.Second)}}, "a@0s a@20s", true},
		"too long a wait":      {standard, map[string][]failure{"a": {fails(again, 429, 31*time.Second)}}, "a@0s b@0s", true},
		"a wait over the time": {policy{1, 10 * time.Second}, map[string][]failure{"a": {fails(again, 429, 20*time.Second)}}, "a@0s b@0s", true},
		"no retries":           {policy{0, time.Minute}, map[string][]failure{"a": {fails(again, 500, 0)}}, "a@0s b@0s", true},
		"all fail": {standard, map[string][]failure{
			"a": {fails(again, 500, 0), fails(again, 500, 0)}, "b": {fails(again, 500, 0), fails(again, 500, 0)},
		}, "a@0s a@0s b@0s b@0s", false},
		"time is over": {policy{2, 15 * time.Second}, map[string][]failure{
			"a": {fails(again, 429, 10*time.Second), fails(again, 429, 10*time.Second), fails(again, 429, 10*time.Second)},
		}, "a@0s a@10s b@10s", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, answered := play(t.Context(), c.policy, []target{account(t, "a"), account(t, "b")}, c.script)
				if got != c.want || answered != c.answered {
					t.Errorf("attempts %s, answered %v; want %s, %v", got, answered, c.want, c.answered)
				}
			})
		})
	}
}

func TestBackoffGrows(t *testing.T) {
	for retries, most := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		for range 100 {
			if d := backoff(retries); d > most || d < most/2 {
				t.Fatalf("after %d retries it waits %s, want %s to %s", retries, d, most/2, most)
			}
		}
	}
}

func TestClientGoneEndsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got, answered := play(ctx, policy{1, time.Minute}, []target{account(t, "a"), account(t, "b")},
			map[string][]failure{"a": {fails(again, 429, 20*time.Second)}})
		if got != "a@0s" || answered {
			t.Errorf("attempts %s, answered %v", got, answered)
		}
	})
}

func TestAccountThatFailsRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := account(t, "a"), account(t, "b")
		once := policy{0, time.Minute}
		call := func(targets ...target) string {
			got, _ := play(t.Context(), once, targets, map[string][]failure{"a": {fails(again, 500, 0)}})
			return got
		}
		for range maxFailures {
			if got := call(a, b); got != "a@0s b@0s" {
				t.Fatalf("attempts %s", got)
			}
			time.Sleep(time.Second)
		}
		if got := call(a, b); got != "b@0s" {
			t.Errorf("attempts %s, want a to rest", got)
		}
		if got := call(a); got != "a@0s" {
			t.Errorf("attempts %s, want a, for no other stands", got)
		}
		time.Sleep(healthWindow)
		if got := call(a, b); got != "a@0s b@0s" {
			t.Errorf("attempts %s, want a again", got)
		}
		healthOf(a.account).succeeded()
		for range maxFailures {
			if got := call(a, b); got != "a@0s b@0s" {
				t.Errorf("attempts %s: seldom failures are no illness", got)
			}
			time.Sleep(healthWindow)
		}
	})
}

package llmadmin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/credits"
)

// creditsStatus is one element of the answer of /llm/credits.
type creditsStatus struct {
	Org   string `json:"org"`
	Store string `json:"store"`
	credits.Statement
}

// Grant is the body of a POST to /llm/credits.
type Grant struct {
	Org    string `json:"org"`
	Amount string `json:"amount"` // in US dollars
}

func listCredits(w http.ResponseWriter, r *http.Request) error {
	answer := []creditsStatus{}
	for _, store := range stores.InUse() {
		if !store.Serves() {
			return errStarting
		}
		ledger, err := store.Credits()
		var balances []credits.Balance
		if err == nil {
			balances, err = ledger.Balances(r.Context())
		}
		if err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: %w", store.Name(), err)}
		}
		for _, b := range balances {
			answer = append(answer, creditsStatus{b.Org, store.Name(), b.Statement()})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(answer)
}

func grantCredits(w http.ResponseWriter, r *http.Request) error {
	var g Grant
	app, err := readJSON(w, r, &g)
	if err != nil {
		return err
	}
	amount, err := catalog.ParseRate(g.Amount)
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("amount: %w", err)}
	}
	if !app.Money().HasCredits(g.Org) {
		return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf("no organisation %q with credits is configured", g.Org)}
	}
	store, err := app.StoreOf(g.Org)
	if err != nil {
		return err
	}
	ledger, err := store.Credits()
	if err == nil {
		err = ledger.Grant(r.Context(), g.Org, amount.Nano())
	}
	if errors.Is(err, credits.ErrUnavailable) {
		return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
	}
	if err != nil {
		return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: err}
	}
	return listCredits(w, r)
}

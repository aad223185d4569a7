package echo

import "net/http"

type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func serveModels(w http.ResponseWriter, _ *http.Request, _ *exchange) *failure {
	writeJSON(w, http.StatusOK, modelList{"list", []model{{ID: DefaultModel, Object: "model", OwnedBy: "weir"}}})
	return nil
}

package providers

import (
	"crypto/sha256"

	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/shared"
)

// Deployment is a model at an account.
type Deployment struct {
	Account *Account
	// Model is the model's name at the provider.
	Model string
	// Listed is the model in the catalogue, nil if the catalogue does not know it.
	Listed *catalog.Model
	// Name is `label/model`, which is how a client names exactly this deployment.
	Name string
	// Circuit identifies the deployment at any node, and in any configuration.
	Circuit shared.Key
}

// Deployment returns the deployment of a model, which the catalogue has as listed.
func (a *Account) Deployment(model string, listed *catalog.Model) *Deployment {
	return &Deployment{
		Account: a, Model: model, Listed: listed, Name: a.Label + "/" + model, Circuit: sha256.Sum256(append(a.ID[:], model...)),
	}
}

package providers

import (
	"crypto/sha256"
	"strings"
	"sync"

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

// maxDeployments is how many deployments an account remembers: clients choose the names of models.
const maxDeployments = 1024

// deployments are those of an account that calls have named, so that a call need not hash again
// what identifies them.
type deployments struct {
	mu      sync.RWMutex
	byModel map[string]*Deployment // guarded by mu
}

// Deployment returns the deployment of a model, which the catalogue has as listed.
func (a *Account) Deployment(model string, listed *catalog.Model) *Deployment {
	a.deployed.mu.RLock()
	d := a.deployed.byModel[model]
	a.deployed.mu.RUnlock()
	if d != nil && d.Listed == listed {
		return d
	}
	model = strings.Clone(model)
	d = &Deployment{
		Account: a, Model: model, Listed: listed, Name: a.Label + "/" + model, Circuit: sha256.Sum256(append(a.ID[:], model...)),
	}
	a.deployed.mu.Lock()
	defer a.deployed.mu.Unlock()
	if a.deployed.byModel == nil || len(a.deployed.byModel) >= maxDeployments {
		a.deployed.byModel = make(map[string]*Deployment)
	}
	a.deployed.byModel[model] = d
	return d
}

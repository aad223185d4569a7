package routing

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// Alias is a name of the configuration for models, and the rule by which each call chooses
// among them. In JSON, a list of names stands for models that are tried in their order.
type Alias struct {
	// Strategy chooses the model that a call tries first: `order` takes the models as they
	// stand; `weight` divides the calls by the weights of the models; `least_busy` takes the
	// model with the fewest calls under way for its weight; `fastest` the one with the
	// lowest median of the time to the first token, of the last five minutes; `cheapest` the
	// one at which the call is expected to cost least, with what the provider's cache
	// has of the conversation. Default: `order`.
	Strategy Strategy `json:"strategy,omitempty"`

	// Split names the attribute whose equal values always get the same model, as a
	// comparison of two models needs: `user`, `session`, `key`, `project` or
	// `property.<name>`. Calls without a value are divided at random. It needs the strategy
	// `weight`. Default: each conversation gets a model of its own.
	Split string `json:"split,omitempty"`

	// Shadows are models that get a share of the calls, too, once these are answered. Nobody sees
	// what they answer but who reads the records. Default: none.
	Shadows []*Shadow `json:"shadows,omitempty"`

	// Models are those that the alias stands for, at least one.
	Models []*Choice `json:"models"`

	subject func(*storage.Record) string // of Split, nil without one
}

// Choice is a model of an alias, and what becomes of the calls that choose it.
type Choice struct {
	// Model is a name that a request may have in its field `model`, but no alias.
	Model string `json:"model"`

	// Arm names the choice on its records. Default: the model.
	Arm string `json:"arm,omitempty"`

	// Weight is the share of the calls, next to the weights of the other models. Default: 1.
	Weight *int `json:"weight,omitempty"`

	// When is the filter, in the form of commands, that a call must match. Beside attributes of
	// the call it takes `tokens`, estimated by the length of the request, and `tools`,
	// `images` and `stream`, which are true or false. Default: all calls.
	When string `json:"when,omitempty"`

	// Set are fields of the request that get a value, in place of the client's.
	// `reasoning_effort` and `max_tokens` stand for the field that the API of the request has
	// for it. Default: none.
	Set map[string]json.RawMessage `json:"set,omitempty"`

	// Limit are numeric fields of the request that get at most a value. A request without the
	// field gets the value, too. Default: none.
	Limit map[string]int64 `json:"limit,omitempty"`

	condition storage.Filter   // of When, nil without one
	program   *storage.Program // of the condition
}

// Shadow is a model that gets calls which another one has answered.
type Shadow struct {
	// Model is a name that a request may have in its field `model`, but no alias.
	Model string `json:"model"`

	// Share is the part of the calls that it gets, above 0 and at most 1.
	Share float64 `json:"share"`
}

// ShadowArm is the arm of the records of shadows.
const ShadowArm = "shadow"

// Strategy is how an alias chooses among its models.
type Strategy string

// The strategies.
const (
	InOrder   Strategy = "order"
	ByWeight  Strategy = "weight"
	LeastBusy Strategy = "least_busy"
	Fastest   Strategy = "fastest"
	Cheapest  Strategy = "cheapest"
)

var strategies = []Strategy{InOrder, ByWeight, LeastBusy, Fastest, Cheapest}

// InTheirOrder returns an alias whose models are tried in their order.
func InTheirOrder(models ...string) *Alias {
	a := new(Alias)
	for _, m := range models {
		a.Models = append(a.Models, &Choice{Model: m})
	}
	return a
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Alias) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var models []string
		err := json.Unmarshal(b, &models)
		*a = *InTheirOrder(models...)
		return err
	}
	type plain Alias
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(a)); err != nil {
		return err
	}
	return a.checkNulls()
}

// checkNulls refuses null where a model stands.
func (a *Alias) checkNulls() error {
	switch {
	case slices.Contains(a.Models, nil):
		return errors.New("a model has no name")
	case slices.Contains(a.Shadows, nil):
		return errors.New("a shadow has no model")
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (a *Alias) MarshalJSON() ([]byte, error) {
	if a.Strategy == "" && a.Split == "" && a.Shadows == nil && !slices.ContainsFunc(a.Models, (*Choice).hasRules) {
		return json.Marshal(a.names())
	}
	type plain Alias
	return json.Marshal((*plain)(a))
}

// AllModels are the names of the models, and of the shadows.
func (a *Alias) AllModels() []string {
	all := a.names()
	for _, s := range a.Shadows {
		all = append(all, s.Model)
	}
	return all
}

// inOrder reports whether the models are tried as they stand.
func (a *Alias) inOrder() bool { return a.Strategy == "" || a.Strategy == InOrder }

// names are those of the models.
func (a *Alias) names() []string {
	names := make([]string, len(a.Models))
	for i, m := range a.Models {
		names[i] = m.Model
	}
	return names
}

// hasRules reports whether the choice is more than a model.
func (c *Choice) hasRules() bool {
	return c.Arm != "" || c.Weight != nil || c.When != "" || len(c.Set) > 0 || len(c.Limit) > 0
}

// Check reads the alias, and says what is wrong with it. isAlias tells the names of aliases, which
// do not stand for each other.
func (a *Alias) Check(isAlias func(name string) bool) error {
	if a.Strategy != "" && !slices.Contains(strategies, a.Strategy) {
		return fmt.Errorf("strategy %s: want order, weight, least_busy, fastest or cheapest", a.Strategy)
	}
	if len(a.Models) == 0 {
		return errors.New("name at least one model")
	}
	if a.Split != "" {
		if a.Strategy != ByWeight {
			return fmt.Errorf("split divides calls by the weights of the models: set strategy %s", ByWeight)
		}
		if a.subject = subjectOf(a.Split); a.subject == nil {
			return fmt.Errorf("split %s: want user, session, key, project or property.<name>", a.Split)
		}
	}
	if err := a.checkNulls(); err != nil {
		return err
	}
	arms := make(map[string]bool)
	for _, m := range a.Models {
		if err := m.check(isAlias); err != nil {
			return err
		}
		if m.Weight != nil && a.Strategy != ByWeight && a.Strategy != LeastBusy {
			return fmt.Errorf("model %s: weight: the strategies %s and %s have weights", m.Model, ByWeight, LeastBusy)
		}
		arm := cmp.Or(m.Arm, m.Model)
		if arms[arm] && !a.inOrder() {
			return fmt.Errorf("two models have the arm %s: give each an arm of its own", arm)
		}
		arms[arm] = true
	}
	for _, s := range a.Shadows {
		switch {
		case s.Model == "" || strings.Contains(s.Model, ",") || isAlias(s.Model):
			return fmt.Errorf("shadow %q: want the name of one model, and no alias", s.Model)
		case !(s.Share > 0 && s.Share <= 1):
			return fmt.Errorf("shadow %s: share %v: want a part of the calls above 0 and at most 1", s.Model, s.Share)
		}
	}
	return nil
}

func (c *Choice) check(isAlias func(name string) bool) (err error) {
	switch {
	case c.Model == "" || strings.Contains(c.Model, ","):
		return fmt.Errorf("model %q: want the name of one model", c.Model)
	case isAlias(c.Model):
		return fmt.Errorf("%s is an alias, too: name its models", c.Model)
	case cmp.Or(c.Arm, c.Model) == ShadowArm:
		return fmt.Errorf("model %s: %s is the arm of shadows: give it another arm", c.Model, ShadowArm)
	case c.Weight != nil && *c.Weight < 1:
		return fmt.Errorf("model %s: weight %d: want 1 or more; leave the model out if it shall get no calls", c.Model, *c.Weight)
	}
	for _, field := range slices.Concat(slices.Collect(maps.Keys(c.Set)), slices.Collect(maps.Keys(c.Limit))) {
		if slices.Contains(unsettable, field) {
			return fmt.Errorf("model %s: %s is what the client asks, and no parameter of a model", c.Model, field)
		}
	}
	for field, limit := range c.Limit {
		if limit < 1 {
			return fmt.Errorf("model %s: limit %s %d: want 1 or more", c.Model, field, limit)
		}
	}
	if c.When != "" {
		if c.condition, err = parseCondition(c.When); err != nil {
			return fmt.Errorf("model %s: when %s: %w", c.Model, c.When, err)
		}
		c.program = storage.Compile(c.condition, nil)
	}
	return nil
}

// AsksForTools reports whether the condition of the choice asks whether a call has tools, which no
// record has.
func (c *Choice) AsksForTools() bool {
	if c.condition == nil {
		return false
	}
	for leaf := range storage.Leaves(c.condition) {
		if leaf.Key == toolsProperty {
			return true
		}
	}
	return false
}

// OutputLimit is the most that the choice lets an answer have, in tokens. ok is false if it limits none.
func (c *Choice) OutputLimit() (tokens int64, ok bool) {
	for _, name := range []string{maxTokens, "max_completion_tokens", "max_output_tokens"} {
		limit := c.Limit[name]
		if n := gjson.ParseBytes(c.Set[name]); limit == 0 && n.Type == gjson.Number {
			limit = n.Int()
		}
		if limit > 0 && (!ok || limit < tokens) {
			tokens, ok = limit, true
		}
	}
	return tokens, ok
}

// ServiceTier is the service tier that the choice sets, "" if it sets none.
func (c *Choice) ServiceTier() string { return gjson.ParseBytes(c.Set["service_tier"]).Str }

// Columns are the columns of a record that the condition of the choice compares, beside the tokens of the
// input. ok is false if it compares more than columns.
func (c *Choice) Columns() (names []string, ok bool) {
	if c.condition == nil {
		return nil, true
	}
	for leaf := range storage.Leaves(c.condition) {
		switch {
		case leaf.Field.Name == "total_tokens": // are those of the input
		case leaf.Field.Column == nil:
			return nil, false
		default:
			names = append(names, leaf.Field.Column.Name)
		}
	}
	return names, true
}

// EffectiveWeight is the Weight with its default.
func (c *Choice) EffectiveWeight() int {
	if c == nil || c.Weight == nil {
		return 1
	}
	return *c.Weight
}

// subjectOf returns what a record has for an attribute, nil if no alias can split by it.
func subjectOf(attribute string) func(*storage.Record) string {
	switch attribute {
	case "user":
		return func(r *storage.Record) string { return r.UserID }
	case "session":
		return func(r *storage.Record) string { return r.SessionID }
	case "key":
		return func(r *storage.Record) string { return r.AuthHash }
	case "project":
		return func(r *storage.Record) string { return r.Project }
	}
	if name, ok := strings.CutPrefix(attribute, "property."); ok && name != "" {
		return func(r *storage.Record) string { return r.Properties[name] }
	}
	return nil
}

package llmgateway

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/reasoning"
	"github.com/weirhq/weir/plugins"
)

// maxBatched is how many calls a batch of Messages has at most, at Anthropic and here
// (https://platform.claude.com/docs/en/build-with-claude/batch-processing#batch-limitations).
const maxBatched = 100_000

// messageBatch is a request that makes a batch of Messages: its calls stand within, and name
// models as any other call does.
type messageBatch struct {
	call     *call
	account  *providers.Account          // makes the batch; nil before all calls are read once
	targets  map[string][]routing.Target // what each name of a model stands for
	accounts []*providers.Account        // serve all calls read so far; nil before the first call
	models   map[string]bool             // models at the account that makes the batch
}

func (f *fileCall) makesMessageBatch() bool {
	return f.call.route.pattern == "POST "+messageBatchesPath
}

// readMessageBatch reads the calls of a batch of Messages, and finds an account at which
// all calls can be made. Each call gets the name that its model has at this account.
func (f *fileCall) readMessageBatch() error {
	if err := f.call.readObject(); err != nil {
		return err
	}
	b := messageBatch{call: f.call, targets: make(map[string][]routing.Target), models: make(map[string]bool)}
	if err := b.each(b.narrow); err != nil {
		return err
	}
	b.account = b.accounts[0]
	f.file.account = b.account
	sent, end := make([]byte, 0, len(f.call.input.body)), 0
	err := b.each(func(at string, params *plugins.Object, index int) error {
		edited, err := b.edit(at, params)
		sent = append(append(sent, f.call.input.body[end:index]...), edited...)
		end = index + len(params.Data)
		return err
	})
	if err != nil {
		return err
	}
	f.call.input.sent, f.names = append(sent, f.call.input.body[end:]...), slices.Collect(maps.Keys(b.models))
	adder := bound.Adder{Catalog: f.call.h.site.App.Catalog(), Provider: f.file.account.Provider}
	f.batch = adder.Inline("", f.call.input.object(f.call.input.sent))
	return f.call.atAccount(f.file.account).allowStored(true)
}

// each calls do with the params of each call, where they stand, and their index in the body.
func (b *messageBatch) each(do func(at string, params *plugins.Object, index int) error) error {
	body := b.call.input.object(b.call.input.body)
	if err := bound.JSON(plugins.Messages, body).Refuse(nil, ""); err != nil {
		return err
	}
	list := body.Get("requests")
	switch n := list.Get("#").Int(); {
	case !list.IsArray() || n == 0:
		return plugins.Invalid("requests", "requests: a list of calls is required.")
	case n > maxBatched:
		return plugins.Invalid("requests", "requests: the list has %d calls, and a batch at most %d.", n, maxBatched)
	}
	i := -1
	var err error
	list.ForEach(func(_, element gjson.Result) bool {
		i++
		at := "requests." + strconv.Itoa(i)
		request, ok := plugins.ParseObject(b.call.input.body[element.Index:][:len(element.Raw)])
		v := request.Get("params")
		index := element.Index + v.Index
		params, isObject := plugins.ParseObject(b.call.input.body[index:][:len(v.Raw)])
		switch {
		case !ok:
			err = plugins.Invalid(at, "%s: an object is expected.", at)
		case !isObject:
			err = plugins.Invalid(at, "%s.params: an object is required.", at)
		default:
			err = errors.Join(bound.JSON(plugins.Messages, request).Refuse(nil, ""), bound.JSON(plugins.Messages, params).Refuse(nil, ""))
			if err == nil {
				err = do(at+".params", params, index)
			}
			err = within(at, err)
		}
		return err == nil
	})
	return err
}

// within is an error that says where in the request its cause stands.
func within(at string, err error) error {
	if e, ok := errors.AsType[*plugins.Error](err); ok {
		located := *e
		if !strings.HasPrefix(e.Message, at) {
			located.Message = at + ": " + e.Message
		}
		return &located
	}
	return err
}

// narrow drops the accounts that do not serve a call.
func (b *messageBatch) narrow(at string, params *plugins.Object, _ int) error {
	model := params.Get("model").Str
	if model == "" {
		return plugins.Invalid("model", "%s.model: the name of a model is required.", at)
	}
	targets, known := b.targets[model]
	if !known {
		var err error
		if targets, err = b.call.resolve(model); err != nil {
			return within(at+".model", err)
		}
		if slices.ContainsFunc(targets, func(t routing.Target) bool { return t.Choice != nil && t.Choice.When != "" }) {
			return plugins.Invalid("model", "%s.model: '%.100s' chooses a model by what each call is, and the calls of a batch go to one account. Name the model that shall answer.", at, model)
		}
		targets = slices.DeleteFunc(slices.Clone(targets), func(t routing.Target) bool {
			_, err := b.call.at(t).endpoint(messageBatchesPath)
			return err != nil
		})
		if len(targets) == 0 {
			return plugins.Invalid("model", "%s.model: no provider that makes batches of Messages serves '%.100s'. Name a model of a provider of the kind anthropic.", at, model).
				WithCode(unsupportedEndpoint)
		}
		targets = slices.DeleteFunc(targets, func(t routing.Target) bool { return !b.call.key.MayCall(t.Account.Label, t.Model) })
		if len(targets) == 0 {
			return within(at+".model", access.NotAllowed(model))
		}
		b.targets[strings.Clone(model)] = targets
	}
	if b.accounts == nil {
		for _, t := range targets {
			b.accounts = append(b.accounts, t.Account)
		}
		return nil
	}
	common := slices.DeleteFunc(slices.Clone(b.accounts), func(a *providers.Account) bool { return serves(targets, a) == nil })
	if len(common) == 0 {
		return plugins.Invalid("model", "%s.model: '%.100s' is not served by %s, which serves the calls before. A batch is made at one provider, by one account.", at, model, b.accounts[0].Label)
	}
	b.accounts = common
	return nil
}

// serves is the first of the targets at the account, nil if there is none.
func serves(targets []routing.Target, account *providers.Account) *routing.Target {
	i := slices.IndexFunc(targets, func(t routing.Target) bool { return t.Account == account })
	if i < 0 {
		return nil
	}
	return &targets[i]
}

// edit returns the params of a call as the account of the batch gets them.
func (b *messageBatch) edit(at string, params *plugins.Object) ([]byte, error) {
	c, account := b.call, b.account
	target := serves(b.targets[params.Get("model").Str], account)
	if err := c.key.CheckModels(bound.JSON(plugins.Messages, params), account.Label); err != nil {
		return nil, err
	}
	b.models[target.Model] = true
	for _, named := range bound.StateOf(plugins.Messages, params).IDs {
		named.Param = at + "." + named.Param
		c.stored.IDs = append(c.stored.IDs, named)
	}
	body, warnings := reasoning.Readable(plugins.Messages, bytes.Join(plugins.WithModel(params, target.Model), nil))
	if target.Choice.HasParameters() {
		applied, changes, err := target.Choice.Apply(plugins.Messages, body)
		if err != nil {
			return nil, plugins.Invalid("model", "%s: %v.", at, err)
		}
		body, warnings = applied, append(warnings, changes...)
	}
	for _, w := range warnings {
		c.controls.Warnings = append(c.controls.Warnings, at+"."+w)
	}
	return body, nil
}

package translate

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Call begins the call of a tool by its flat name, which decides whether it is
// of a function or a custom tool. Repetitions are fine: another id begins
// another call, an id of "" means the same one, and until its arguments begin,
// a name that differs continues the one before. A call without an id gets one. With neither id nor
// name, no call begins if another is open. Nor does one begin with another id if the piece goes on with a
// call: there are providers that give each piece an id of its own
// (https://github.com/poolsideai/pool/issues/9).
func (a *Assembler) Call(key int, id, name string) {
	if a.done() || a.stopSequence != "" {
		return
	}
	o := a.find(key)
	if o == nil && id == "" && name == "" && a.openCallOf(key) != nil {
		return
	}
	if o != nil && (!o.isCall() || id != "" && o.CallID != "" && o.CallID != id && !a.continues(o, name)) {
		a.close(o, statusCompleted)
		o = nil
	}
	if o == nil {
		if len(a.open) > 0 && !a.open[0].isCall() {
			a.closeAll(statusCompleted)
			a.flush()
		}
		o = &Output{Kind: CallOutput, key: key, Index: unopened}
		a.open = append(a.open, o)
		a.grow(itemSize)
	}
	if o.Index != unopened {
		return
	}
	if id != "" {
		o.CallID = id
	}
	if name != o.Name {
		o.Name += name
		a.grow(len(name))
	}
}

// continues reports whether a piece with this name and another id goes on with an open call: without
// a name, it adds to arguments that are no whole object yet; with the same name, it begins the call
// that has no arguments so far a second time (https://github.com/Avarok-Cybersecurity/atlas/issues/33).
func (a *Assembler) continues(o *Output, name string) bool {
	if name == "" {
		return o.Name != "" && !a.HasArguments(o.key)
	}
	return name == o.Name && o.pending == "" && (o.Index == unopened || len(o.parts[0].Text) == 0) && len(o.quoted) == 0
}

// Args adds to the arguments of a call. Those of a custom tool are the object
// {"input": "..."}; the client gets its input. If no call of the key is open, they are of the last
// call: there are providers that go on at another index.
func (a *Assembler) Args(key int, s string) {
	if !a.takesText(len(s)) {
		return
	}
	o := a.openCallOf(key)
	switch {
	case o == nil:
		a.Fail(plugins.Upstream("The provider sent arguments for a call that is not open."))
	case o.Name == "":
		o.pending += s
	default:
		a.openCall(o)
		a.arguments(o, s)
		a.flush()
	}
}

// openCallOf returns the open call of a key, or else the last one that is open, or nil.
func (a *Assembler) openCallOf(key int) *Output {
	if o := a.find(key); o != nil && o.isCall() {
		return o
	}
	for _, o := range slices.Backward(a.open) {
		if o.isCall() {
			return o
		}
	}
	return nil
}

// HasArguments reports whether a call of the key is open whose arguments are a whole object, so
// that what follows of a call without an id is another call.
func (a *Assembler) HasArguments(key int) bool {
	o := a.find(key)
	return o != nil && o.isCall() && o.Index != unopened && o.unwrap == nil &&
		(plugins.ValidJSON([]byte(o.Arguments())) || plugins.ValidJSON(o.quoted))
}

// CustomInput adds to the free-form input of the call of a custom tool.
func (a *Assembler) CustomInput(key int, s string) {
	o := a.find(key)
	if o != nil && o.Kind == CallOutput && o.Index == unopened && !a.done() {
		o.Kind = CustomCallOutput
	}
	a.Args(key, s)
}

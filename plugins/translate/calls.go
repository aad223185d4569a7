package translate

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Call takes one piece of a tool call at an index (key). The id and the flat name may be "".
// The name decides whether the tool is a function or a custom tool. Providers split calls in many ways:
//
//   - A piece without an id belongs to the open call at its index.
//   - A piece with another id begins another call, unless it continues the open one (see continues).
//   - A piece with neither id nor name begins a call only if no call is open.
//   - Until the arguments begin, a name that differs is appended to the name so far.
//
// A call that never gets an id from the provider gets one from the Assembler.
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

// continues reports whether a piece with another id still belongs to the open call o.
//
// Some providers give each piece a new id (https://github.com/poolsideai/pool/issues/9). Such a piece
// has no name, and the arguments of o are incomplete. Others begin a call twice
// (https://github.com/Avarok-Cybersecurity/atlas/issues/33). Such a piece repeats the name, and o has
// no arguments yet.
func (a *Assembler) continues(o *Output, name string) bool {
	if name == "" {
		return o.Name != "" && !a.HasCompleteArguments(o.key)
	}
	return name == o.Name && o.pending == "" && (o.Index == unopened || len(o.parts[0].Text) == 0) && len(o.quoted) == 0
}

// Args adds to the arguments of the call at an index (key). A custom tool has the arguments
// {"input": "..."}, and the client gets the input alone. If no call is open at this index, s belongs to
// the last open call: some providers continue a call at another index.
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

// openCallOf returns the open call of the key, else the last open call, or nil if none is open.
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

// HasCompleteArguments reports whether the open call of the key has a complete JSON object as its
// arguments. Then nothing can be added to it, and a piece without an id begins another call.
func (a *Assembler) HasCompleteArguments(key int) bool {
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

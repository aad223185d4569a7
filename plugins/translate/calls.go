package translate

import "github.com/weirhq/weir/plugins"

// Call begins the call of a tool by its flat name, which decides whether it is
// of a function or a custom tool. Repetitions are fine: another id begins
// another call, an id of "" means the same one, and until its arguments begin,
// a name that differs continues the one before. A call without an id gets one.
func (a *Assembler) Call(key int, id, name string) {
	if a.done() {
		return
	}
	o := a.find(key)
	if o != nil && (!o.isCall() || id != "" && o.CallID != "" && o.CallID != id) {
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

// Args adds to the arguments of a call. Those of a custom tool are the object
// {"input": "..."}; the client gets its input.
func (a *Assembler) Args(key int, s string) {
	if !a.takes(len(s)) {
		return
	}
	o := a.find(key)
	switch {
	case o == nil || !o.isCall():
		a.Fail(plugins.Upstream("The provider sent arguments for a call that is not open."))
	case o.Name == "":
		o.held += s
	default:
		a.openCall(o)
		a.arguments(o, s)
		a.flush()
	}
}

// CustomInput adds to the free-form input of the call of a custom tool.
func (a *Assembler) CustomInput(key int, s string) {
	o := a.find(key)
	if o != nil && o.Kind == CallOutput && o.Index == unopened && !a.done() {
		o.Kind = CustomCallOutput
	}
	a.Args(key, s)
}

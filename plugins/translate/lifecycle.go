package translate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// commit opens the stream, once.
func (a *Assembler) commit() {
	if a.committed || a.sink == nil {
		return
	}
	a.committed = true
	a.emit(Event{Type: Began})
}

// announce opens an item.
func (a *Assembler) announce(o *Output) {
	a.commit()
	o.Index = len(a.items)
	o.ID = a.opts.ID(idPrefixes[o.Kind])
	a.items = append(a.items, o)
	a.emit(Event{Type: ItemOpened, Output: o})
}

var idPrefixes = [...]string{
	MessageOutput:    "msg_",
	ReasoningOutput:  "rs_",
	CallOutput:       "fc_",
	CustomCallOutput: "ctc_",
	ImageOutput:      "ig_",
	HostedOutput:     "item_",
}

func randomID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// openCall opens a call whose name is whole, after those that were mentioned before
// it, so that calls keep the provider's order.
func (a *Assembler) openCall(o *Output) {
	if o.Index != unopened {
		return
	}
	for _, c := range a.open {
		if c.Index == unopened && c.Name != "" {
			a.announceCall(c)
		}
		if c == o {
			return
		}
	}
}

func (a *Assembler) announceCall(o *Output) {
	o.resolve(a.request)
	if o.CallID == "" {
		o.CallID = a.opts.ID("call_")
	}
	kind := ArgumentsPart
	if o.Kind == CustomCallOutput {
		kind = InputPart
	}
	o.parts = []OutputPart{{Kind: kind}}
	a.announce(o)
	a.emit(Event{Type: PartOpened, Output: o, Part: &o.parts[0]})
	held := o.held
	o.held = ""
	a.arguments(o, held)
}

// arguments adds to a call that is open.
func (a *Assembler) arguments(o *Output, s string) {
	if o.unwrap != nil {
		s = o.unwrap.push(s)
	}
	if s != "" {
		a.appendText(o, o.parts[0].Kind, s)
	}
}

// close ends an item that is open.
func (a *Assembler) close(o *Output, status string) {
	if o.IsCall() && o.Name != "" {
		a.openCall(o)
	}
	a.open = slices.DeleteFunc(a.open, func(other *Output) bool { return other == o })
	a.settle(o, status)
}

// closeAll ends all items that are open. If the response is incomplete, only its
// last item is.
func (a *Assembler) closeAll(status string) {
	for _, o := range a.open {
		if o.Index == unopened && o.Name != "" {
			a.announceCall(o)
		}
	}
	for _, o := range a.open {
		s := statusCompleted
		if o.Index == len(a.items)-1 {
			s = status
		}
		a.settle(o, s)
	}
	a.open = a.open[:0]
}

// settle closes an item: its last part, and then itself.
func (a *Assembler) settle(o *Output, status string) {
	if o.Index == unopened { // a call that never got a name
		if o.CallID != "" || o.held != "" {
			a.Fail(plugins.Upstream("The provider called a tool without naming it."))
		}
		return
	}
	if o.unwrap != nil {
		if rest := o.unwrap.rest(); rest != "" {
			a.appendText(o, InputPart, rest)
		}
	}
	if o.Kind == CallOutput && len(o.parts[0].Text) == 0 && status == statusCompleted {
		a.appendText(o, ArgumentsPart, "{}") // a call without arguments still has an object of them
	}
	if p := o.part(); p != nil {
		a.emit(Event{Type: PartClosed, Output: o, Part: p})
	}
	o.JSON = o.appendJSON(nil, status)
	o.parts = nil
	a.emit(Event{Type: ItemClosed, Output: o})
}

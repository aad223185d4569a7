package translate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// commit opens the stream, once.
func (a *Assembler) commit() {
	if a.committed || a.events == nil {
		return
	}
	a.committed = true
	response := a.appendResponse(nil, statusInProgress)
	a.events.lifecycle("response.created", response)
	a.events.lifecycle("response.in_progress", response)
}

// announce opens an item.
func (a *Assembler) announce(o *output) {
	a.commit()
	o.index = len(a.items)
	o.id = a.opts.ID(idPrefixes[o.kind])
	a.items = append(a.items, o)
	if a.events != nil {
		a.events.item("response.output_item.added", o.index, o.appendJSON(nil, statusInProgress))
	}
}

var idPrefixes = [...]string{
	messageOutput:    "msg_",
	reasoningOutput:  "rs_",
	callOutput:       "fc_",
	customCallOutput: "ctc_",
	imageOutput:      "ig_",
	nativeOutput:     "item_",
}

func randomID(prefix string) string {
	return fmt.Sprintf("%s%016x%016x", prefix, rand.Uint64(), rand.Uint64())
}

// openCall opens a call whose name is whole, after those that were mentioned before
// it, so that calls keep the provider's order.
func (a *Assembler) openCall(o *output) {
	if o.index != unopened {
		return
	}
	for _, c := range a.open {
		if c.index == unopened && c.name != "" {
			a.announceCall(c)
		}
		if c == o {
			return
		}
	}
}

func (a *Assembler) announceCall(o *output) {
	o.resolve(a.request)
	if o.callID == "" {
		o.callID = a.opts.ID("call_")
	}
	kind := argumentsPart
	if o.kind == customCallOutput {
		kind = inputPart
	}
	o.parts = []part{{kind: kind}}
	a.announce(o)
	a.events.openPart(o, &o.parts[0])
	held := o.held
	o.held = ""
	a.arguments(o, held)
}

// arguments adds to a call that is open.
func (a *Assembler) arguments(o *output, s string) {
	if o.unwrap != nil {
		s = o.unwrap.push(s)
	}
	if s != "" {
		a.appendText(o, o.parts[0].kind, s)
	}
}

// close ends an item that is open.
func (a *Assembler) close(o *output, status string) {
	if o.call() && o.name != "" {
		a.openCall(o)
	}
	a.open = slices.DeleteFunc(a.open, func(other *output) bool { return other == o })
	a.settle(o, status)
}

// closeAll ends all items that are open. If the response is incomplete, only its
// last item is.
func (a *Assembler) closeAll(status string) {
	for _, o := range a.open {
		if o.index == unopened && o.name != "" {
			a.announceCall(o)
		}
	}
	for _, o := range a.open {
		s := statusCompleted
		if o.index == len(a.items)-1 {
			s = status
		}
		a.settle(o, s)
	}
	a.open = a.open[:0]
}

// settle closes an item: its last part, and then itself.
func (a *Assembler) settle(o *output, status string) {
	if o.index == unopened { // a call that never got a name
		if o.callID != "" || o.held != "" {
			a.Fail(plugins.Upstream("The provider called a tool without naming it."))
		}
		return
	}
	if o.unwrap != nil {
		if rest := o.unwrap.rest(); rest != "" {
			a.appendText(o, inputPart, rest)
		}
	}
	if o.kind == callOutput && len(o.parts[0].text) == 0 && status == statusCompleted {
		a.appendText(o, argumentsPart, "{}") // a call without arguments still has an object of them
	}
	if p := o.part(); p != nil {
		a.events.closePart(o, p)
	}
	o.json = o.appendJSON(nil, status)
	o.parts = nil
	a.events.item("response.output_item.done", o.index, o.json)
}

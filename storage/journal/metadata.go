package journal

import (
	"github.com/weirhq/weir/storage"
)

type (
	record     = storage.Record
	annotation = storage.Annotation
	loss       = storage.Loss
	content    = storage.Content
	moment     = storage.Timestamp
)

// recordWire is the metadata of a record's entry: see storage.Schema.
var recordWire = func() (wire message[record]) {
	for _, c := range storage.Schema {
		if c.Wire >= len(wire) {
			wire = append(wire, make(message[record], c.Wire+1-len(wire))...)
		}
		if c.Wire > 0 {
			wire[c.Wire] = c.At
		}
	}
	return wire
}()

var feedbackWire = message[storage.Feedback]{
	1: func(f *storage.Feedback) any { return &f.ID },
	2: func(f *storage.Feedback) any { return &f.Rating },
	3: func(f *storage.Feedback) any { return &f.CreatedAt },
}

var annotationWire = message[annotation]{
	1:  func(a *annotation) any { return &a.Org },
	2:  func(a *annotation) any { return &a.RequestID },
	3:  func(a *annotation) any { return &a.SessionID },
	4:  func(a *annotation) any { return &a.At },
	5:  func(a *annotation) any { return &a.Scores },
	6:  func(a *annotation) any { return &a.Feedback },
	7:  func(a *annotation) any { return &a.Property },
	8:  func(a *annotation) any { return &a.Tag },
	9:  func(a *annotation) any { return &a.View },
	10: func(a *annotation) any { return &a.Conversation },
	11: func(a *annotation) any { return &a.Removed },
}

type conversation = storage.ConversationChange

var conversationWire = message[conversation]{
	1: func(c *conversation) any { return &c.ID },
	2: func(c *conversation) any { return &c.Created },
	3: func(c *conversation) any { return &c.User },
	4: func(c *conversation) any { return &c.Metadata },
	5: func(c *conversation) any { return &c.Add },
	6: func(c *conversation) any { return &c.Items },
	7: func(c *conversation) any { return &c.Remove },
	8: func(c *conversation) any { return &c.Deleted },
	9: func(c *conversation) any { return &c.Record },
}

var propertyWire = message[storage.Property]{
	1: func(p *storage.Property) any { return &p.Name },
	2: func(p *storage.Property) any { return &p.Value },
}

var viewWire = message[storage.View]{
	1: func(v *storage.View) any { return &v.Name },
	2: func(v *storage.View) any { return &v.Screen },
	3: func(v *storage.View) any { return &v.State },
	4: func(v *storage.View) any { return &v.UpdatedAt },
}

var lossWire = message[loss]{
	1: func(l *loss) any { return &l.Reason },
	2: func(l *loss) any { return &l.Count },
	3: func(l *loss) any { return &l.From },
	4: func(l *loss) any { return &l.To },
	5: func(l *loss) any { return &l.Exchanges },
}

var endWire = message[storage.Position]{
	1: func(p *storage.Position) any { return &p.Segment },
	2: func(p *storage.Position) any { return &p.Ordinal },
}

// contentWire is the content of an entry, and of a sealed block. The bodies
// come last, so that an append can write them from where they are.
var contentWire = message[content]{
	1:               func(c *content) any { return &c.Request.Type },
	2:               func(c *content) any { return &c.Response.Type },
	3:               func(c *content) any { return &c.Inputs },
	4:               func(c *content) any { return &c.Media },
	requestData:     func(c *content) any { return &c.Request.Data },
	requestData + 1: func(c *content) any { return &c.Response.Data },
	unassembled:     func(c *content) any { return &c.Unassembled },
}

// requestData is the number of the first body.
const requestData = 5

// unassembled is the number of a field that sealed blocks alone have.
const unassembled = 8

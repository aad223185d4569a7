package llmquery

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

func addScores(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	scores := make(map[string]float64)
	given := b.object("scores")
	names := given.names
	given.names = nil // none is unknown, and there may be as many as the body has room for
	for _, name := range names {
		switch value := given.fields[name]; {
		case name == "" || len(name) > control.MaxName:
			b.fail("scores", "a name has 1 to %d bytes", control.MaxName)
		case name == storage.FeedbackScore:
			given.fail(name, "feedback has an endpoint of its own")
		case value.IsBool() || value.Type == gjson.Number && !math.IsInf(value.Num, 0):
			scores[name] = value.Float()
		default:
			given.expect(name, "a number or a boolean", value)
		}
	}
	if len(scores) == 0 {
		b.fail("scores", "an object with at least one score is expected")
	}
	if err := b.finish(); err != nil {
		return err
	}
	return c.annotateRequest(http.StatusCreated, &storage.Annotation{Scores: scores})
}

func giveFeedback(c *call) error {
	rating, err := c.rating()
	if err != nil {
		return err
	}
	now := time.Now()
	return c.annotateRequest(http.StatusOK, &storage.Annotation{Feedback: &storage.Feedback{
		ID:        now.UnixMicro(),
		Rating:    rating,
		CreatedAt: storage.Millis(now),
	}})
}

// removeScore removes feedback as well.
func removeScore(c *call) error {
	return c.annotateRequest(http.StatusOK, &storage.Annotation{Removed: []string{c.r.PathValue("name")}})
}

func setProperty(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	name, _ := b.text("key")
	value, given := b.text("value")
	expected, conditional := b.text("expected")
	switch {
	case name == "" || len(name) > control.MaxName:
		b.fail("key", "the name of a property is expected, of 1 to %d bytes", control.MaxName)
	case control.SessionName(name) != "":
		b.fail("key", "%s says which session a request belongs to, which does not change", control.SessionName(name))
	case !given:
		b.fail("value", "a string is expected")
	case len(value) > control.MaxValue:
		b.fail("value", "at most %d bytes are expected, not %d", control.MaxValue, len(value))
	}
	if err := b.finish(); err != nil {
		return err
	}
	if conditional {
		lock := propertyLock(c.r.PathValue("id"))
		lock.Lock()
		defer lock.Unlock()
		if err := c.expectProperty(name, expected); err != nil {
			return err
		}
	}
	return c.annotateRequest(http.StatusOK, &storage.Annotation{Property: &storage.Property{Name: name, Value: value}})
}

// propertyLocks let conditional changes of a request's properties happen one after the other, at
// all handlers of the process.
var propertyLocks [64]sync.Mutex

func propertyLock(id string) *sync.Mutex {
	parsed, _ := uuid.Parse(id) // a request without a valid id is not found
	return &propertyLocks[parsed[len(parsed)-1]%64]
}

// expectProperty refuses a change of a property that has another value than expected. "" expects
// that the request does not have the property.
func (c *call) expectProperty(name, expected string) error {
	if err := c.journal.Flush(c.ctx); err != nil {
		return err
	}
	r, err := c.request()
	if err != nil {
		return err
	}
	if now := r.Properties[name]; now != expected {
		return &plugins.Error{Status: http.StatusConflict, Message: fmt.Sprintf("expected: the property %s is now %q; read the request again", name, now)}
	}
	return nil
}

// sessionFeedback is the property of a session's first request that has the verdict on the
// session.
const sessionFeedback = "Service-Session-Feedback"

func giveSessionFeedback(c *call) error {
	rating, err := c.rating()
	if err != nil {
		return err
	}
	first, err := c.firstOfSession()
	if err != nil {
		return err
	}
	value := "0"
	if rating {
		value = "1"
	}
	return c.annotate(http.StatusOK, &storage.Annotation{
		RequestID: first.ID,
		Property:  &storage.Property{Name: sessionFeedback, Value: value},
	})
}

func setSessionTag(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	tag, given := b.text("tag")
	switch {
	case !given:
		b.fail("tag", "a string is expected")
	case len(tag) > control.MaxValue:
		b.fail("tag", "at most %d bytes are expected, not %d", control.MaxValue, len(tag))
	}
	if err := b.finish(); err != nil {
		return err
	}
	if _, err := c.firstOfSession(); err != nil {
		return err
	}
	return c.annotate(http.StatusOK, &storage.Annotation{SessionID: c.r.PathValue("id"), Tag: &tag})
}

func getSessionTag(c *call) error {
	if _, err := c.firstOfSession(); err != nil {
		return err
	}
	tag, err := c.journal.Backend().SessionTag(c.ctx, c.org, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	var answer apierror.Envelope
	if tag != "" {
		answer.Data = tag
	}
	return answer.Write(c.w, http.StatusOK)
}

func (c *call) rating() (bool, error) {
	b, err := c.body()
	if err != nil {
		return false, err
	}
	rating := b.boolean("rating")
	if rating == nil {
		b.fail("rating", "a boolean is expected")
	}
	if err := b.finish(); err != nil {
		return false, err
	}
	return *rating, nil
}

// errNoSession is the error for a session that has no request.
var errNoSession = &plugins.Error{Status: http.StatusNotFound, Message: "no such session"}

// firstOfSession is the first request of the session in the path.
func (c *call) firstOfSession() (*storage.Record, error) {
	if err := c.journal.Flush(c.ctx); err != nil {
		return nil, err
	}
	records, err := c.journal.Backend().Requests(c.ctx, &storage.RequestQuery{
		Org: c.org,
		Filter: &storage.Leaf{
			Field: storage.LookupField(storage.RequestResponse, "properties"),
			Key:   control.SessionNames[0], Op: storage.Equals, Text: c.r.PathValue("id"),
		},
		Sort:  []storage.Sort{{Key: storage.SortCreatedAt}},
		Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, errNoSession
	}
	return records[0], nil
}

// annotateRequest records an annotation of the request in the path.
func (c *call) annotateRequest(status int, a *storage.Annotation) error {
	r, err := c.request()
	if errors.Is(err, storage.ErrNotFound) {
		id, _ := uuid.Parse(c.r.PathValue("id"))
		if !c.journal.Pending(storage.RecordKey{Org: c.org, ID: id}) {
			return err
		}
		r = &storage.Record{ID: id} // its exchange has not ended
	} else if err != nil {
		return err
	}
	if err := withinBounds(r, a); err != nil {
		return err
	}
	a.RequestID = r.ID
	return c.annotate(status, a)
}

// withinBounds refuses an annotation that would make a record larger than headers can: all who
// share the store pay for its size.
func withinBounds(r *storage.Record, a *storage.Annotation) error {
	scores := len(r.Scores)
	for name := range a.Scores {
		if _, known := r.Scores[name]; !known {
			scores++
		}
	}
	if scores > control.MaxScores {
		return badRequest("scores: a request has at most %d scores, and would have %d", control.MaxScores, scores)
	}
	if a.Property == nil {
		return nil
	}
	if _, known := r.Properties[a.Property.Name]; !known && len(r.Properties) >= control.MaxProperties {
		return badRequest("key: a request has at most %d properties", control.MaxProperties)
	}
	return nil
}

// annotate records an annotation, and answers once the next query knows it.
func (c *call) annotate(status int, a *storage.Annotation) error {
	a.Org, a.At = c.org, storage.Millis(time.Now())
	if err := c.journal.AppendAnnotation(a); err != nil {
		return err
	}
	if err := c.journal.Flush(c.ctx); err != nil {
		return err
	}
	return apierror.Envelope{}.Write(c.w, status)
}

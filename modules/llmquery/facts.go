package llmquery

import (
	"math"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// addScores takes POST /v1/request/{id}/score.
func addScores(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	scores := make(map[string]float64)
	given := b.object("scores")
	given.known = given.names
	for _, name := range given.names {
		switch value := given.fields[name]; {
		case name == "":
			given.fail(name, "a score needs a name")
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
	return c.learnOfRequest(http.StatusCreated, &storage.Annotation{Scores: scores})
}

// giveFeedback takes POST /v1/request/{id}/feedback.
func giveFeedback(c *call) error {
	rating, err := c.rating()
	if err != nil {
		return err
	}
	now := time.Now()
	return c.learnOfRequest(http.StatusOK, &storage.Annotation{Feedback: &storage.Feedback{
		ID:        now.UnixMicro(),
		Rating:    rating,
		CreatedAt: storage.Millis(now),
	}})
}

// setProperty takes PUT /v1/request/{id}/property.
func setProperty(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	name, _ := b.text("key")
	value, given := b.text("value")
	if name == "" {
		b.fail("key", "the name of a property is expected")
	}
	if !given {
		b.fail("value", "a string is expected")
	}
	if err := b.finish(); err != nil {
		return err
	}
	return c.learnOfRequest(http.StatusOK, &storage.Annotation{Property: &storage.Property{Name: name, Value: value}})
}

// sessionID and sessionFeedback are the properties that stand for a session and
// for the verdict on it, which its first request carries.
const (
	sessionID       = "Service-Session-Id"
	sessionFeedback = "Service-Session-Feedback"
)

// giveSessionFeedback takes POST /v1/session/{id}/feedback.
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
	return c.learn(http.StatusOK, &storage.Annotation{
		RequestID: first.ID,
		Property:  &storage.Property{Name: sessionFeedback, Value: value},
	})
}

// setSessionTag takes POST /v1/session/{id}/tag.
func setSessionTag(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	tag, given := b.text("tag")
	if !given {
		b.fail("tag", "a string is expected")
	}
	if err := b.finish(); err != nil {
		return err
	}
	if _, err := c.firstOfSession(); err != nil {
		return err
	}
	return c.learn(http.StatusOK, &storage.Annotation{SessionID: c.r.PathValue("id"), Tag: &tag})
}

// getSessionTag answers GET /v1/session/{id}/tag: null without a tag.
func getSessionTag(c *call) error {
	if _, err := c.firstOfSession(); err != nil {
		return err
	}
	tag, err := c.journal.Backend().SessionTag(c.ctx, c.org, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	return envelope{Data: orNull(tag)}.write(c.w, http.StatusOK)
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

// firstOfSession is the first request of the session in the path.
func (c *call) firstOfSession() (*storage.Record, error) {
	if err := c.journal.Flush(c.ctx); err != nil {
		return nil, err
	}
	records, err := c.journal.Backend().Requests(c.ctx, &storage.RequestQuery{
		Org: c.org,
		Filter: &storage.Leaf{
			Field: storage.LookupField(storage.RequestResponse, "properties"),
			Key:   sessionID, Op: storage.Equals, Text: c.r.PathValue("id"),
		},
		Sort:  []storage.Sort{{Key: storage.SortCreatedAt}},
		Limit: 1,
	})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, &problem{status: http.StatusNotFound, message: "no such session"}
	}
	return records[0], nil
}

// learnOfRequest records a fact about the request in the path.
func (c *call) learnOfRequest(status int, f *storage.Annotation) error {
	id, err := uuid.Parse(c.r.PathValue("id"))
	if err != nil {
		return storage.ErrNotFound
	}
	if !c.journal.Pending(c.org, id) {
		if _, err := c.journal.Backend().Request(c.ctx, c.org, id); err != nil {
			return err
		}
	}
	f.RequestID = id
	return c.learn(status, f)
}

// learn records a fact, and answers once the next query knows it.
func (c *call) learn(status int, f *storage.Annotation) error {
	f.Org, f.At = c.org, storage.Millis(time.Now())
	if err := c.journal.AppendFact(f); err != nil {
		return err
	}
	if err := c.journal.Flush(c.ctx); err != nil {
		return err
	}
	return envelope{}.write(c.w, status)
}

package cache

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Records has the records of calls with their answers: a journal.
type Records interface {
	Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error)
	Answer(ctx context.Context, r *storage.Record) (storage.Body, error)
	// Removals counts what has been removed: while it stays, all that was read is still there.
	Removals() uint64
}

// Cache is the cache of a store at this node.
type Cache struct {
	table   *table
	secret  []byte
	digests sync.Pool // of *digest, with the secret
	records Records
	replays replays
	logger  *zap.Logger

	mu      sync.Mutex
	leaders map[Key]*Lead // for whose answers equal calls wait; guarded by mu

	saving sync.Mutex
	added  int // entries since it was opened; guarded by saving
}

// Open opens the cache beside a journal. The secret keys its hashes.
func Open(dir string, secret []byte, records Records, logger *zap.Logger) (*Cache, error) {
	t, err := open(dir)
	if err != nil {
		return nil, err
	}
	if err := t.trim(context.Background(), time.Now(), maxEntries); err != nil {
		return nil, errors.Join(err, t.close())
	}
	derived := hmac.New(sha256.New, secret)
	derived.Write([]byte("weir: the cache of answers"))
	c := &Cache{table: t, secret: derived.Sum(nil), records: records, logger: logger, leaders: make(map[Key]*Lead)}
	c.digests.New = func() any { return newDigest(c.secret) }
	return c, nil
}

// Close closes the table. Calls in flight then save nothing.
func (c *Cache) Close() error { return c.table.close() }

// Hit is an answer that a provider gave before.
type Hit struct {
	Record *storage.Record // of the call that it answered
	Body   storage.Body
	Bucket int
	// HidesUsage: the client has not asked for the usage that the stream has.
	HidesUsage bool
}

// SetHeader tells a client that the cache has answered.
func (h *Hit) SetHeader(header http.Header) {
	header["Service-Cache"] = []string{"HIT"}
	header["Service-Cache-Bucket-Idx"] = []string{strconv.Itoa(h.Bucket)}
}

// Lead is a call that goes to the provider. End must follow. A nil Lead does nothing.
type Lead struct {
	cache   *Cache
	key     Key
	options *Options
	ended   chan struct{} // closed when the call has ended, nil if nobody waits for it
	over    bool          // what follows does nothing
	// answered: the provider has answered, and equal calls have nothing more to wait for. They find
	// the answer, unless it may not or cannot be given again. It is written before ended is closed.
	answered bool
}

// Answer returns the answer to a request, or the lead of the call that asks the provider for it.
// It waits for a call that does so already. refusal says why the cache has no part in the call, and
// is "" if it may have. All results are zero if ctx has ended.
func (c *Cache) Answer(ctx context.Context, q *Request, o *Options) (hit *Hit, lead *Lead, refusal string) {
	if refusal = q.refusal(); refusal != "" {
		return nil, nil, refusal
	}
	k := c.key(q, o)
	// A key that the table knows is that of a request that was read to its end before. It does not
	// cover the fields that the caller ignores.
	if len(o.Ignore) > 0 || !c.table.knows(k) {
		if refusal = q.contentRefusal(); refusal != "" {
			return nil, nil, refusal
		}
	}
	for alone := !o.Read || !o.Save || o.Buckets > 1; ; {
		if o.Read {
			if hit = c.find(ctx, q.Org, k, o); hit != nil {
				return hit, nil, ""
			}
		}
		if alone {
			return nil, &Lead{cache: c, key: k, options: o}, ""
		}
		lead, first := c.join(&Lead{cache: c, key: k, options: o})
		if first { // perhaps because another leader has just ended
			if hit = c.find(ctx, q.Org, k, o); hit != nil {
				lead.End()
				return hit, nil, ""
			}
			return nil, lead, ""
		}
		select {
		case <-ctx.Done():
			return nil, nil, ""
		case <-lead.ended:
			alone = lead.answered // who does not find that answer would find no other one: all ask at once
		}
	}
}

// join returns the call that leads those with the key of a call: another one, or that call.
func (c *Cache) join(l *Lead) (lead *Lead, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if lead = c.leaders[l.key]; lead != nil {
		return lead, false
	}
	l.ended = make(chan struct{})
	c.leaders[l.key] = l
	return l, true
}

// Save puts an answer in the table if it may be given again, else it withholds the answer. A client
// that has left says nothing of the answer: then Save does nothing. The record of the call is in the
// journal, seen is what was read of the answer, and body the complete answer without
// Content-Encoding, nil if it is not at hand. Equal requests that are asked from now on find it.
func (l *Lead) Save(r *storage.Record, seen *plugins.ResponseInfo, body []byte, hidesUsage bool) {
	switch {
	case l == nil, l.over, r.EndState == storage.ClientAborted:
	case !mayRepeat(r) || !completes(r, seen, body):
		l.Withhold()
	case l.options.Save:
		l.cache.save(l, r, body, hidesUsage)
		l.answered = true
	}
}

// Withhold ends the lead of a call whose answer no other call gets: the provider has failed, or
// wants the answer not to be stored. Equal calls that wait each ask the provider.
func (l *Lead) Withhold() {
	if l != nil && !l.over {
		l.answered = true
		l.End()
	}
}

// End lets equal calls go on that wait: each finds the answer, or one of them leads. What kept
// the call from its answer need not keep the next one: its client has left, or a limit of its
// caller has refused or cut the call.
func (l *Lead) End() {
	if l == nil || l.over {
		return
	}
	l.over = true
	if l.ended == nil {
		return
	}
	l.cache.mu.Lock()
	delete(l.cache.leaders, l.key)
	l.cache.mu.Unlock()
	close(l.ended)
}

// Forbids reports whether a provider wants its answer not to be stored (RFC 9111, section
// 5.2.2.5). Google says `private` of every answer: it goes to the caller's organisation alone.
func Forbids(header http.Header) bool {
	for part := range strings.SplitSeq(strings.Join(header["Cache-Control"], ","), ",") {
		if name, _, _ := strings.Cut(part, "="); strings.EqualFold(strings.TrimSpace(name), "no-store") {
			return true
		}
	}
	return false
}

// mayRepeat reports whether the answer of a record may be given again.
func mayRepeat(r *storage.Record) bool {
	return r.AnswerCache == storage.CacheMiss && r.EndState == storage.Complete && r.Status == plugins.Known(http.StatusOK) && r.ErrorType == "" &&
		!r.RequestOmitted && !r.ResponseOmitted && !r.RequestTruncated && !r.ResponseTruncated && r.Masked == ""
}

// finishReasons are those of complete answers in all dialects, in lower case. Another one may say that
// the provider broke the answer off.
var finishReasons = []string{
	"stop", "length", "tool_calls", "tool_call", "function_call", "content_filter", "completed", "incomplete",
	"end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal", "model_context_window_exceeded",
	"max_output_tokens", "model_length", "eos", "eos_token", "end_of_text", "complete", "finish", "finished",
	"safety", "recitation", "blocklist", "prohibited_content", "spii", "guardrail_intervened", "content_filtered",
}

// completes reports whether an answer says of itself that it is complete, and has something.
func completes(r *storage.Record, seen *plugins.ResponseInfo, body []byte) bool {
	switch {
	case observe.TellsEnd(r.Dialect) && (observe.OutcomeOf(seen) != observe.Ended || observe.Interrupted(seen)),
		observe.Finishes(r.Dialect) && !slices.Contains(finishReasons, strings.ToLower(seen.Finish)):
		return false
	case r.Stream:
		return len(body) > 0 && observe.TellsEnd(r.Dialect) && !observe.EndsInDone(r.Dialect, body)
	}
	_, isObject := plugins.ParseObject(body)
	return isObject
}

// saveTimeout bounds the wait for the table.
const saveTimeout = 5 * time.Second

func (c *Cache) save(l *Lead, r *storage.Record, body []byte, hidesUsage bool) {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	now := time.Now()
	c.saving.Lock()
	defer c.saving.Unlock()
	there, err := c.table.entries(ctx, l.key, now)
	if err == nil {
		e := entry{bucket: freeBucket(there, l.options.Buckets), record: r.ID, sum: c.sum(body), hidesUsage: hidesUsage, saved: now, expires: now.Add(l.options.Lifetime)}
		err = c.table.add(ctx, l.key, e)
	}
	if c.added++; err == nil && c.added%trimEvery == 0 {
		err = c.table.trim(ctx, now, maxEntries)
	}
	if err != nil {
		c.logger.Warn("an answer cannot be kept for later calls", zap.Error(err))
	}
}

// freeBucket returns the first bucket without an answer, else the bucket of the oldest answer.
func freeBucket(there []entry, buckets int) int {
	oldest := entry{}
	for i := range buckets {
		at := slices.IndexFunc(there, func(e entry) bool { return e.bucket == i })
		if at < 0 {
			return i
		}
		if oldest.saved.IsZero() || there[at].saved.Before(oldest.saved) {
			oldest = there[at]
		}
	}
	return oldest.bucket
}

// find returns an answer that is in the table and in the journal, nil if there is none. While
// fewer answers are there than the caller wants to choose from, there is none.
func (c *Cache) find(ctx context.Context, org string, k Key, o *Options) *Hit {
	now := time.Now()
	there, err := c.table.entries(ctx, k, now)
	if err != nil {
		if ctx.Err() == nil {
			c.logger.Warn("the cache of answers cannot be read", zap.Error(err))
		}
		return nil
	}
	there = slices.DeleteFunc(there, func(e entry) bool {
		return e.bucket >= o.Buckets || o.MaxAge > 0 && now.Sub(e.saved) > o.MaxAge
	})
	if len(there) < o.Buckets {
		return nil
	}
	e := there[rand.IntN(len(there))]
	found, err := c.replay(ctx, org, &e, now)
	switch {
	case err == nil:
		return &Hit{Record: found.record, Body: found.body, Bucket: e.bucket, HidesUsage: e.hidesUsage}
	case errors.Is(err, storage.ErrNotFound):
		if err = c.table.remove(ctx, k, e); err != nil && ctx.Err() == nil {
			c.logger.Warn("the cache of answers cannot be written", zap.Error(err))
		}
	}
	return nil
}

// replay returns the answer of an entry. It is not found if it was deleted, masked or stored in
// another form.
func (c *Cache) replay(ctx context.Context, org string, e *entry, now time.Time) (replay, error) {
	key, removals := storage.RecordKey{Org: org, ID: e.record}, c.records.Removals()
	if found, ok := c.replays.get(key, now, removals); ok && found.sum == e.sum {
		return found, nil
	}
	r, err := c.records.Request(ctx, key)
	if err != nil {
		return replay{}, err
	}
	if !mayRepeat(r) {
		return replay{}, storage.ErrNotFound
	}
	body, err := c.records.Answer(ctx, r)
	if err != nil {
		return replay{}, err
	}
	found := replay{record: r, body: body, sum: c.sum(body.Data), read: now, removals: removals}
	if body.Data == nil || !hmac.Equal(found.sum[:], e.sum[:]) {
		return replay{}, storage.ErrNotFound
	}
	c.replays.put(key, found)
	return found, nil
}

// sum is the keyed hash of an answer.
func (c *Cache) sum(body []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, c.secret)
	h.Write([]byte("answer"))
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

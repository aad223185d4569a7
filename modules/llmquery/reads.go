package llmquery

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// The audit log says who reads content of calls that others have made: by an event for each record,
// reader and hour, or one for an export or a list of first words. The event is written before the
// content is sent.

// severalRecords is the object of an event that is not about one record.
const severalRecords = "requests"

// maxReads bounds the events of one action and reader in an hour, so that a program which reads
// everything does not fill the audit log.
const maxReads = 1000

// contentRead is an event's details. It has no value of a filter, which may name somebody or quote content.
type contentRead struct {
	record string // the id of the record, or severalRecords

	// Path is what was asked.
	Path string `json:"path"`
	// User is whom the reader's token names, "" for a key.
	User string `json:"user,omitempty"`
	// Searched are the conditions of the filter, without their values; nil in an event about one record.
	Searched []string `json:"searched,omitempty"`
	// MoreThan is maxReads if the reader's further reads of the hour have no events, else 0.
	MoreThan int `json:"more_than,omitempty"`
}

// key is equal for reads that are one event.
func (r *contentRead) key() string {
	if r.record != severalRecords {
		return r.record
	}
	return strings.Join(append([]string{r.Path}, r.Searched...), "\n")
}

// auditReads lets the audit log say that the caller reads the content of records. No log, no event.
func (c *call) auditReads(records []*storage.Record, s *shape) error {
	if on := c.app.AuditReads; !c.content || on != nil && !*on {
		return nil
	}
	log, err := c.store.ControlIfAny()
	if err != nil {
		return c.refuseRead(err)
	}
	if log == nil {
		return nil
	}
	path, reader, user := c.r.Pattern, "public", ""
	if c.caller != nil {
		reader, user = c.caller.Name(), c.caller.User()
	}
	action, filter := s.audited()
	var reads []contentRead
	for _, r := range records {
		if r.Content == (storage.ContentRef{}) || c.caller != nil && c.caller.Made(r) {
			continue
		}
		if filter != nil {
			reads = []contentRead{{record: severalRecords, Path: path, User: user, Searched: storage.Conditions(filter)}}
			break
		}
		reads = append(reads, contentRead{record: r.ID.String(), Path: path, User: user})
	}
	if reads == nil {
		return nil
	}
	address, _ := caddyhttp.GetVar(c.r.Context(), caddyhttp.ClientIPVarKey).(string)
	org := &control.Organisation{Log: log, Name: c.org, By: control.Actor{Key: reader, Address: address}}
	ctx, cancel := context.WithTimeout(c.ctx, time.Duration(c.Timeout))
	defer cancel()
	audited := c.reads.lookup(strings.Join([]string{c.org, reader, user, action}, "\n"), time.Now())
	if err := audited.add(reads, func(fresh []contentRead) error {
		notes := make([]control.Note, len(fresh))
		for i, r := range fresh {
			notes[i] = control.Note{Object: r.record, Details: r}
		}
		return org.Tell(ctx, action, notes...)
	}); err != nil {
		return c.refuseRead(err)
	}
	return nil
}

// refuseRead is the error for content that is not shown, because of an error of the audit log.
func (c *call) refuseRead(err error) error {
	c.logger.Error("content is not shown, because the audit log does not take who reads it", zap.Error(err))
	return &plugins.Error{
		Status: http.StatusServiceUnavailable, RetryAfter: retryAfter,
		Message: "the audit log cannot be written, and content is shown only if the log says who reads it: try again later, or ask without content." + journal.Advice(err),
	}
}

// audited returns the action of an answer that has content, and the filter of an answer that is one
// event, nil if each of its records is one.
func (s *shape) audited() (action string, filter storage.Filter) {
	switch {
	case s.exportOf != nil:
		return control.ContentExported, s.exportOf
	case s.content || s.inputs:
		return control.ContentRead, nil
	default:
		return control.ContentListed, s.preview
	}
}

// hourOfReads remembers the reads of an hour that the audit log has.
type hourOfReads struct {
	mu    sync.Mutex
	hour  time.Time              // guarded by mu
	reads map[string]*readsOfOne // by reader and action; guarded by mu
}

// lookup returns the reads of a reader and an action in the hour of a time.
func (h *hourOfReads) lookup(reader string, now time.Time) *readsOfOne {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hour := now.Truncate(time.Hour); !hour.Equal(h.hour) {
		h.hour, h.reads = hour, make(map[string]*readsOfOne)
	}
	if h.reads[reader] == nil {
		h.reads[reader] = &readsOfOne{audited: make(map[string]bool)}
	}
	return h.reads[reader]
}

// readsOfOne are the reads of one reader and action.
type readsOfOne struct {
	mu      sync.Mutex      // also while events are written, so that each is written once
	audited map[string]bool // guarded by mu
}

// add writes the reads that are new. If they are too many, the last event says so.
func (o *readsOfOne) add(reads []contentRead, write func(fresh []contentRead) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := slices.DeleteFunc(reads, func(r contentRead) bool { return o.audited[r.key()] })
	if room := maxReads - len(o.audited); room < 0 {
		return nil
	} else if len(fresh) > room {
		fresh = append(fresh[:room], contentRead{record: severalRecords, Path: fresh[room].Path, User: fresh[room].User, MoreThan: maxReads})
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := write(fresh); err != nil {
		return err
	}
	for _, r := range fresh {
		o.audited[r.key()] = true
	}
	return nil
}

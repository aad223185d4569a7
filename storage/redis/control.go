package redis

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

const (
	// controlInterval is how late a node learns that another node has changed something.
	controlInterval = 250 * time.Millisecond
	// controlTrust is the time for which a node goes on with what it has read while Redis does not
	// answer. A key that was withdrawn elsewhere may be valid here for that time.
	controlTrust = 10 * time.Second
	// usedInterval is how often it is written when objects were used.
	usedInterval = time.Minute
)

// controlLog keeps the control objects that nodes share. Each object is a hash: org, kind,
// name, value, n, which is its place in the order of creation, lists and hashes as JSON, and
// used. Sorted sets have the ids of lists and of events by their places, and hashes have the
// ids of names and of secrets. A counter has the version.
type controlLog struct {
	client *client
	ledger *Ledger // knows whether Redis has lost something

	version atomic.Uint64 // the highest that Redis has told
	known   atomic.Int64  // when Redis has told it, in nanoseconds

	control.Uses

	stop context.CancelFunc
	done chan struct{}
}

func newControlLog(c *client, l *Ledger) *controlLog {
	log := &controlLog{client: c, ledger: l, done: make(chan struct{})}
	var ctx context.Context
	ctx, log.stop = context.WithCancel(context.Background())
	go log.follow(ctx)
	return log
}

// follow learns of changes that other nodes make, and writes when objects were used.
func (l *controlLog) follow(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(controlInterval)
	defer ticker.Stop()
	written := time.Now()
	for {
		_ = l.refresh(ctx) // Trusted tells how long ago Redis answered
		if time.Since(written) > usedInterval {
			written = time.Now()
			l.writeUsed(ctx)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// refresh reads the version.
func (l *controlLog) refresh(ctx context.Context) error {
	requestedAt := time.Now()
	reply, err := l.ask(ctx, readVersion)
	if err != nil {
		return err
	}
	version, err := reply.AsInt64()
	if err == nil {
		l.learn(uint64(version), requestedAt)
	}
	return err
}

// learn keeps a version that Redis has told, and since when it is known.
func (l *controlLog) learn(version uint64, at time.Time) {
	for {
		now := l.version.Load()
		if version <= now || l.version.CompareAndSwap(now, version) {
			break
		}
	}
	for {
		now := l.known.Load()
		if at.UnixNano() <= now || l.known.CompareAndSwap(now, at.UnixNano()) {
			return
		}
	}
}

// Version implements control.Log.
func (l *controlLog) Version() uint64 { return l.version.Load() }

// Trusted implements control.Log.
func (l *controlLog) Trusted() bool {
	return time.Since(time.Unix(0, l.known.Load())) < controlTrust
}

// ask runs a script under what this node knows of Redis. args follow the prefix of keys, and
// the version that the node knows.
func (l *controlLog) ask(ctx context.Context, s *rueidis.Lua, args ...string) (rueidis.RedisMessage, error) {
	known := strconv.FormatUint(l.version.Load(), 10)
	reply, err := l.ledger.ask(ctx, s, []string{l.client.key("control:version")}, append([]string{l.client.key("control:"), known}, args...)...)
	if refused, ok := errors.AsType[*rueidis.RedisError](err); ok {
		code, _, _ := strings.Cut(refused.Error(), " ")
		switch code {
		case "CHANGED":
			err = control.ErrChanged
		case "TAKEN":
			err = control.ErrTaken
		case "NOPLACE":
			err = control.ErrNoPlace
		}
	}
	return reply, err
}

// texts runs a script that returns a list of texts.
func (l *controlLog) texts(ctx context.Context, s *rueidis.Lua, args ...string) ([]string, error) {
	reply, err := l.ask(ctx, s, args...)
	if err != nil {
		return nil, err
	}
	return reply.AsStrSlice()
}

// Commit implements control.Log.
func (l *controlLog) Commit(ctx context.Context, org string, events []control.Event, unchanged ...control.Object) error {
	requestedAt := time.Now()
	change, err := newChange(events, unchanged)
	if err != nil {
		return err
	}
	reply, err := l.ask(ctx, commitControl, org, change)
	if err != nil {
		return err
	}
	version, err := reply.AsInt64()
	l.learn(uint64(version), requestedAt)
	return err
}

// change is what the script of a commit reads.
type change struct {
	Events    []changeEvent  `json:"events"`
	Unchanged []changeObject `json:"unchanged"`
}

// changeEvent is an event of a change. Its Before and After are "" or nil if there was, or is,
// no object, and both if nothing changes.
type changeEvent struct {
	ID     string        `json:"id"`
	Object string        `json:"object"`
	Kind   control.Kind  `json:"kind"`
	Text   string        `json:"text"` // of the whole event
	Before string        `json:"before,omitempty"`
	After  *changeObject `json:"after,omitempty"`
}

// changeObject is an object. Its value is a text, so that the bytes stay as they are.
type changeObject struct {
	ID     string         `json:"id"`
	Kind   control.Kind   `json:"kind"`
	Value  string         `json:"value"`
	Name   string         `json:"name"`
	Lists  []control.List `json:"lists"`
	Hashes []string       `json:"hashes"`
}

func newChange(events []control.Event, unchanged []control.Object) (string, error) {
	var c change
	for _, o := range unchanged {
		c.Unchanged = append(c.Unchanged, newChangeObject(&o))
	}
	for _, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			return "", err
		}
		event := changeEvent{ID: e.ID, Object: e.Object, Kind: e.Subject().Kind, Text: string(text)}
		if e.Changes() && e.Before != nil {
			event.Before = string(e.Before.Value)
		}
		if e.Changes() && e.After != nil {
			event.After = new(newChangeObject(e.After))
		}
		c.Events = append(c.Events, event)
	}
	text, err := json.Marshal(c)
	return string(text), err
}

func newChangeObject(o *control.Object) changeObject {
	c := changeObject{ID: o.ID, Kind: o.Kind, Value: string(o.Value), Name: o.Name, Lists: append([]control.List{}, o.Lists...), Hashes: []string{}}
	for _, h := range o.Hashes {
		c.Hashes = append(c.Hashes, hex.EncodeToString(h[:]))
	}
	return c
}

// within joins an organisation and names within the organisation to a single name.
func within(org string, names ...string) string { return org + "\x00" + strings.Join(names, "\x00") }

// Get implements control.Log.
func (l *controlLog) Get(ctx context.Context, org string, kind control.Kind, id string) (control.Object, error) {
	return l.find(ctx, "", id, org, kind)
}

// Named implements control.Log.
func (l *controlLog) Named(ctx context.Context, org string, kind control.Kind, name string) (control.Object, error) {
	if name == "" {
		return control.Object{}, control.ErrNotFound
	}
	return l.find(ctx, "names", within(org, string(kind), name), org, kind)
}

// Find implements control.Log.
func (l *controlLog) Find(ctx context.Context, hash control.Hash) (control.Object, error) {
	return l.find(ctx, "secrets", hex.EncodeToString(hash[:]), "", "")
}

// find returns an object by its id, or by what names it in a hash. An organisation bounds it
// unless it is "".
func (l *controlLog) find(ctx context.Context, by, name, org string, kind control.Kind) (o control.Object, err error) {
	found, err := l.texts(ctx, findControl, by, name, org, string(kind))
	if err == nil && len(found) == 0 {
		err = control.ErrNotFound
	}
	if err != nil {
		return o, err
	}
	o = control.Object{ID: found[0], Kind: control.Kind(found[1]), Value: json.RawMessage(found[2])}
	var hashes []string
	if err := json.Unmarshal([]byte(found[3]), &hashes); err != nil {
		return o, err
	}
	for _, text := range hashes {
		var h control.Hash
		if _, err := hex.Decode(h[:], []byte(text)); err != nil {
			return o, err
		}
		o.Hashes = append(o.Hashes, h)
	}
	o.UsedAt, err = l.usedAt(o.ID, found[4])
	return o, err
}

// usedAt is when an object was last used, of what Redis and this node know.
func (l *controlLog) usedAt(id, text string) (*storage.Timestamp, error) {
	if text == "" {
		return l.Latest(id, nil), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return l.Latest(id, new(storage.Timestamp(n))), err
}

// List implements control.Log.
func (l *controlLog) List(ctx context.Context, org string, kind control.Kind, p control.Page) (page []control.Object, err error) {
	found, err := l.texts(ctx, listControl, within(org, string(kind), string(p.List)), org, string(kind), p.After, strconv.FormatBool(p.NewestFirst), strconv.Itoa(p.Limit))
	if err != nil {
		return nil, err
	}
	for ; len(found) >= 3; found = found[3:] {
		o := control.Object{ID: found[0], Kind: kind, Value: json.RawMessage(found[1])}
		if o.UsedAt, err = l.usedAt(o.ID, found[2]); err != nil {
			return nil, err
		}
		page = append(page, o)
	}
	return page, nil
}

// Events implements control.Log.
func (l *controlLog) Events(ctx context.Context, org, object, before string, limit int) (page []control.Event, err error) {
	found, err := l.texts(ctx, listEvents, within(org, object), within(org, ""), before, strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	for _, text := range found {
		var e control.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, err
		}
		page = append(page, e)
	}
	return page, nil
}

// writeUsed writes when objects were used.
func (l *controlLog) writeUsed(ctx context.Context) {
	var args []string
	for id, at := range l.Take() {
		args = append(args, id, strconv.FormatInt(int64(at), 10))
	}
	if len(args) == 0 {
		return
	}
	if _, err := l.ask(ctx, useControl, args...); err != nil {
		l.client.Logger.Warn("when keys were last used is not kept", zap.Error(err))
	}
}

// Close implements control.Log.
func (l *controlLog) Close(ctx context.Context) error {
	l.stop()
	<-l.done
	l.writeUsed(ctx)
	return nil
}

// underVersion begins the scripts of control objects. KEYS[1] has the version, ARGV[1] is what
// other keys begin with, and ARGV[2] is the version that the node knows.
const underVersion = sameGeneration + `
local prefix, version = ARGV[1], tonumber(redis.call('GET', KEYS[1]) or 0)
if version < tonumber(ARGV[2]) then
	return redis.error_reply('FORGOTTEN Redis has lost changes of keys and rules: restore its latest data, or, if no key is open that should not be, let nodes continue by: redis-cli SET ' .. KEYS[1] .. ' ' .. ARGV[2])
end
`

var readVersion = rueidis.NewLuaScript(underVersion + `return version`)

// findControl returns id, kind, value, hashes and last use of an object: the object with id
// ARGV[4] if ARGV[3] is empty, else the object that the hash ARGV[3] has under the name
// ARGV[4]. Unless ARGV[5] is empty, the object must be of organisation ARGV[5] and kind ARGV[6].
var findControl = rueidis.NewLuaScript(underVersion + `
local id = ARGV[4]
if ARGV[3] ~= '' then id = redis.call('HGET', prefix .. ARGV[3], id) end
if not id then return {} end
local o = redis.call('HMGET', prefix .. 'object:' .. id, 'org', 'kind', 'value', 'hashes', 'used')
if not o[1] or ARGV[5] ~= '' and (o[1] ~= ARGV[5] or o[2] ~= ARGV[6]) then return {} end
return {id, o[2], o[3], o[4], o[5] or ''}`)

// listControl returns id, value and last use of the objects in the list ARGV[3], which are of
// organisation ARGV[4] and kind ARGV[5]. The list begins after the object ARGV[6], the newest
// come first if ARGV[7] is true, and ARGV[8] bounds the number of objects unless it is 0.
var listControl = rueidis.NewLuaScript(underVersion + `
local low, high, limit = '-inf', '+inf', tonumber(ARGV[8])
if limit == 0 then limit = -1 end
local command, first, last = 'ZRANGEBYSCORE', low, high
if ARGV[6] ~= '' then
	local o = redis.call('HMGET', prefix .. 'object:' .. ARGV[6], 'org', 'kind', 'n')
	if o[1] ~= ARGV[4] or o[2] ~= ARGV[5] then return redis.error_reply('NOPLACE there is none') end
	if ARGV[7] == 'true' then high = '(' .. o[3] else low = '(' .. o[3] end
end
if ARGV[7] == 'true' then command, first, last = 'ZREVRANGEBYSCORE', high, low else first, last = low, high end
local page = {}
for _, id in ipairs(redis.call(command, prefix .. 'list:' .. ARGV[3], first, last, 'LIMIT', 0, limit)) do
	local o = redis.call('HMGET', prefix .. 'object:' .. id, 'value', 'used')
	page[#page + 1], page[#page + 2], page[#page + 3] = id, o[1], o[2] or ''
end
return page`)

// listEvents returns up to ARGV[6] events of the list ARGV[3], the newest first, before the
// event ARGV[5] of the list ARGV[4].
var listEvents = rueidis.NewLuaScript(underVersion + `
local high = '+inf'
if ARGV[5] ~= '' then
	local n = redis.call('ZSCORE', prefix .. 'events:' .. ARGV[4], ARGV[5])
	if not n then return redis.error_reply('NOPLACE there is none') end
	high = '(' .. n
end
local page = {}
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', prefix .. 'events:' .. ARGV[3], high, '-inf', 'LIMIT', 0, ARGV[6])) do
	page[#page + 1] = redis.call('HGET', prefix .. 'event', id)
end
return page`)

// useControl notes when objects were used. The arguments are pairs of an id and the time in
// milliseconds.
var useControl = rueidis.NewLuaScript(underVersion + `
for i = 3, #ARGV - 2, 2 do
	local object = prefix .. 'object:' .. ARGV[i]
	if redis.call('EXISTS', object) == 1 then redis.call('HSET', object, 'used', ARGV[i + 1]) end
end
return version`)

// commitControl makes all or nothing of the change ARGV[4] of organisation ARGV[3], and
// returns the version. All is checked before anything is written: a script that fails leaves
// after what it has written.
var commitControl = rueidis.NewLuaScript(underVersion + `
local org, change = ARGV[3], cjson.decode(ARGV[4])
local function name(kind, name) return org .. '\0' .. kind .. '\0' .. name end
local function text(list)
	if #list == 0 then return '[]' end
	return cjson.encode(list)
end

local objects, holders = {}, {names = {}, secrets = {}}
local function object(id)
	if objects[id] == nil then
		local o = redis.call('HMGET', prefix .. 'object:' .. id, 'org', 'kind', 'name', 'value', 'hashes')
		objects[id] = o[1] and {org = o[1], kind = o[2], name = o[3], value = o[4], hashes = cjson.decode(o[5])} or false
	end
	return objects[id]
end
local function holder(of, name)
	if holders[of][name] == nil then holders[of][name] = redis.call('HGET', prefix .. of, name) end
	return holders[of][name]
end
local function stands(id, kind, value)
	local o = object(id)
	return o and o.org == org and o.kind == kind and o.value == value
end
local changed, taken = redis.error_reply('CHANGED it is another'), redis.error_reply('TAKEN it belongs to another')
for _, u in ipairs(change.unchanged ~= cjson.null and change.unchanged or {}) do
	if not stands(u.id, u.kind, u.value) then return changed end
end
for _, e in ipairs(change.events) do
	local o, a = object(e.object), e.after
	if e.before then
		if not stands(e.object, e.kind, e.before) then return changed end
		if o.name ~= '' then holders.names[name(o.kind, o.name)] = false end
		for _, h in ipairs(o.hashes) do holders.secrets[h] = false end
	elseif o and a then
		return taken
	end
	if e.before then objects[e.object] = false end
	if a then
		if a.name ~= '' then
			if holder('names', name(e.kind, a.name)) then return taken end
			holders.names[name(e.kind, a.name)] = e.object
		end
		for _, h in ipairs(a.hashes) do
			if holder('secrets', h) then return taken end
			holders.secrets[h] = e.object
		end
		objects[e.object] = {org = org, kind = e.kind, name = a.name, value = a.value, hashes = a.hashes}
	end
end

local function list(kind, list) return prefix .. 'list:' .. name(kind, list) end
for _, e in ipairs(change.events) do
	local key, a = prefix .. 'object:' .. e.object, e.after
	local o = redis.call('HMGET', key, 'name', 'lists', 'hashes', 'n')
	local n = o[4]
	if e.before then
		if o[1] ~= '' then redis.call('HDEL', prefix .. 'names', name(e.kind, o[1])) end
		for _, l in ipairs(cjson.decode(o[2])) do redis.call('ZREM', list(e.kind, l), e.object) end
		for _, h in ipairs(cjson.decode(o[3])) do redis.call('HDEL', prefix .. 'secrets', h) end
	end
	if a then
		if not n then
			n = redis.call('INCR', prefix .. 'n')
			redis.call('ZADD', list(e.kind, ''), n, e.object)
		end
		redis.call('HSET', key, 'org', org, 'kind', e.kind, 'name', a.name, 'value', a.value, 'n', n, 'lists', text(a.lists), 'hashes', text(a.hashes))
		if a.name ~= '' then redis.call('HSET', prefix .. 'names', name(e.kind, a.name), e.object) end
		for _, l in ipairs(a.lists) do redis.call('ZADD', list(e.kind, l), n, e.object) end
		for _, h in ipairs(a.hashes) do redis.call('HSET', prefix .. 'secrets', h, e.object) end
	elseif e.before then
		redis.call('ZREM', list(e.kind, ''), e.object)
		redis.call('DEL', key)
	end
	if e.id ~= '' then
		local at = redis.call('INCR', prefix .. 'n')
		redis.call('HSET', prefix .. 'event', e.id, e.text)
		redis.call('ZADD', prefix .. 'events:' .. org .. '\0', at, e.id)
		redis.call('ZADD', prefix .. 'events:' .. org .. '\0' .. e.object, at, e.id)
	end
end
return redis.call('INCR', KEYS[1])`)

// Interface guard
var _ control.Log = (*controlLog)(nil)

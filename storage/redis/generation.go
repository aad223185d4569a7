package redis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/weirhq/weir/internal/disk"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
	"go.uber.org/zap"
)

// generation distinguishes a Redis that has lost credits from a Redis that never had any. Redis
// has an id, and the time at which a node last met Redis. A node keeps in a file the id and the
// time that the node knows. Nothing is granted, reserved or charged under another id, or by an
// older copy of Redis's data, before an operator has accepted the loss.
type generation struct {
	path string

	mu    sync.Mutex // guards the fields below
	known string     // the id, "" until Redis has told an id for the first time
	seen  int64      // the time, in seconds of Redis's clock
}

func openGeneration(path string) (*generation, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &generation{path: path}, nil
	}
	g := generation{path: path}
	if err == nil {
		_, err = fmt.Sscan(string(text), &g.known, &g.seen)
	}
	if err == nil {
		err = uuid.Validate(g.known)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, so that a Redis that has lost credits would not be noticed; delete it if Redis has them: %w", path, err)
	}
	return &g, nil
}

// learn keeps an id and a time in the file before anything is spent under them. It needs the
// mutex.
func (g *generation) learn(id string, seen int64) error {
	if id == g.known && seen == g.seen {
		return nil
	}
	if err := disk.Replace(g.path, fmt.Appendln(nil, id, seen), 0o600); err != nil {
		return unavailable(err)
	}
	g.known, g.seen = id, seen
	return nil
}

// meet asks Redis for its id and its time, and fails if Redis has lost what this node knows.
func (l *Ledger) meet(ctx context.Context) error {
	g := l.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	var told []string
	err := l.client.do(ctx, func(ctx context.Context, server rueidis.Client) (err error) {
		told, err = meet.Exec(ctx, server, []string{l.client.key("generation")}, []string{uuid.NewString(), strconv.FormatInt(g.seen, 10), g.known}).AsStrSlice()
		return err
	})
	if err != nil {
		return err
	}
	seen, err := strconv.ParseInt(told[1], 10, 64)
	if err != nil {
		return unavailable(err)
	}
	before, err := strconv.ParseInt(told[2], 10, 64)
	if err != nil {
		return unavailable(err)
	}
	if lost := g.seen - before; lost > 0 && told[0] == g.known { // the time only grows
		l.client.Logger.Error("Redis has older data than before: what was spent last can be spent again, and what was reserved is free",
			zap.Int64("missing_at_least_seconds", lost))
	}
	return g.learn(told[0], seen)
}

// script runs a script that returns a number, under what this node knows of Redis.
func (l *Ledger) script(ctx context.Context, s *rueidis.Lua, keys []string, args ...string) (int64, error) {
	reply, err := l.ask(ctx, s, keys, args...)
	if err != nil {
		return 0, err
	}
	n, err := reply.AsInt64()
	if err != nil {
		return 0, unavailable(err)
	}
	return n, nil
}

// ask runs a script under what this node knows of Redis, at most once.
func (l *Ledger) ask(ctx context.Context, s *rueidis.Lua, keys []string, args ...string) (reply rueidis.RedisMessage, err error) {
	know := func() (string, int64) {
		l.generation.mu.Lock()
		defer l.generation.mu.Unlock()
		return l.generation.known, l.generation.seen
	}
	known, seen := know()
	if known == "" {
		if err := l.meet(ctx); err != nil {
			return reply, err
		}
		known, seen = know()
	}
	err = l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		reply, err = s.Exec(ctx, server, append(keys, l.client.key("generation")), append(args, strconv.FormatInt(seen, 10), known)).ToMessage()
		return err
	})
	return reply, err
}

// forgotten reports whether Redis has refused a script because it has lost credits.
func forgotten(err error) bool { return err != nil && strings.Contains(err.Error(), "FORGOTTEN") }

// underGeneration begins a script. The last key is the hash that has the id, the time, and a
// field for each earlier id whose loss was accepted; the last arguments are the time and the
// id that the node knows. A crash of Redis may lose the last seconds, and a replica may be as
// late: a copy counts as older if it misses a minute. If it misses less, meet logs the loss.
const underGeneration = `
local function lost()
	return redis.error_reply('FORGOTTEN Redis has lost credits of ' .. KEYS[#KEYS] .. ': restore its latest data, or let all accounts continue with what it has by: redis-cli HSET ' .. KEYS[#KEYS] .. ' ' .. ARGV[#ARGV] .. ' accepted')
end
local id = redis.call('HGET', KEYS[#KEYS], 'id')
local seen = tonumber(redis.call('HGET', KEYS[#KEYS], 'seen') or 0)
local older = seen < tonumber(ARGV[#ARGV - 1]) - 60
`

// sameGeneration begins the scripts that spend.
const sameGeneration = underGeneration + `
if id ~= ARGV[#ARGV] or older then return lost() end
`

// meet returns three texts: the id, the time, and the time that Redis had before. The id becomes
// ARGV[1] if Redis has no id yet, or if a loss of credits under the id was accepted.
var meet = rueidis.NewLuaScript(underGeneration + `
local changed = id ~= ARGV[#ARGV] or older
if changed and ARGV[#ARGV] ~= '' and redis.call('HEXISTS', KEYS[1], ARGV[#ARGV]) == 0 then return lost() end
if not id or older and id == ARGV[#ARGV] then
	id = ARGV[1]
	redis.call('HSET', KEYS[1], 'id', id)
end
local before = seen
seen = math.max(seen, tonumber(redis.call('TIME')[1]))
redis.call('HSET', KEYS[1], 'seen', string.format('%.0f', seen))
return {id, string.format('%.0f', seen), string.format('%.0f', before)}`)

package redis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/rueidis"
)

// generation tells a Redis that has lost the credits from one that never had any. Redis
// has an id, and a node keeps in a file which id it knows. Nothing is granted, reserved or
// charged under another id before an operator has accepted the loss of the known one.
type generation struct {
	path string

	mu    sync.Mutex
	known string // "" until Redis has told an id for the first time
}

func openGeneration(path string) (*generation, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &generation{path: path}, nil
	}
	if err == nil {
		_, err = uuid.ParseBytes(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, so that a Redis that has lost the credits would not be noticed; delete it if Redis has them: %w", path, err)
	}
	return &generation{path: path, known: string(text)}, nil
}

// learn keeps an id in the file before anything is spent under it. It needs the mutex.
func (g *generation) learn(id string) error {
	if id == g.known {
		return nil
	}
	fresh := g.path + ".new"
	err := os.WriteFile(fresh, []byte(id), 0o600)
	if err == nil {
		err = os.Rename(fresh, g.path)
	}
	if err != nil {
		return unavailable(err)
	}
	g.known = id
	return nil
}

// meet returns the id of Redis, unless Redis has lost what this node knows.
func (l *Ledger) meet(ctx context.Context) (id string, err error) {
	g := l.generation
	g.mu.Lock()
	defer g.mu.Unlock()
	err = l.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		id, err = meet.Exec(ctx, server, []string{l.client.key("generation")}, []string{uuid.NewString(), g.known}).ToString()
		return err
	})
	if err == nil {
		err = g.learn(id)
	}
	return id, err
}

// script runs a script of the ledger under the known id.
func (l *Ledger) script(ctx context.Context, s *rueidis.Lua, keys []string, args ...string) (int64, error) {
	l.generation.mu.Lock()
	known := l.generation.known
	l.generation.mu.Unlock()
	if known == "" {
		var err error
		if known, err = l.meet(ctx); err != nil {
			return 0, err
		}
	}
	return l.client.run(ctx, s, append(keys, l.client.key("generation")), append(args, known)...)
}

// forgotten reports whether Redis has refused a script because it has lost credits.
func forgotten(err error) bool { return err != nil && strings.Contains(err.Error(), "FORGOTTEN") }

// underGeneration begins a script. The last key is the hash that has the id, and a field
// for each earlier id whose loss was accepted; the last argument is the id that the node
// knows.
const underGeneration = `
local function lost()
	return redis.error_reply('FORGOTTEN Redis has lost the credits of ' .. KEYS[#KEYS] .. ': restore its data, or let all accounts begin again with the configured grants by: redis-cli HSET ' .. KEYS[#KEYS] .. ' ' .. ARGV[#ARGV] .. ' accepted')
end
`

// sameGeneration begins the scripts that spend.
const sameGeneration = underGeneration + `
if redis.call('HGET', KEYS[#KEYS], 'id') ~= ARGV[#ARGV] then return lost() end
`

// meet returns the id, which is ARGV[1] if Redis has none yet.
var meet = rueidis.NewLuaScript(underGeneration + `
local id = redis.call('HGET', KEYS[1], 'id')
if ARGV[2] ~= '' and id ~= ARGV[2] and redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return lost() end
if not id then
	id = ARGV[1]
	redis.call('HSET', KEYS[1], 'id', id)
end
return id`)

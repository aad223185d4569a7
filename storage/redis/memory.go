package redis

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/storage/shared"
)

const (
	// maxMemory bounds what the nodes of a store remember, in bytes.
	maxMemory = 256 << 20
	// memoryAge is how long a value is remembered after its last use, and at least half of
	// it: not every use is written.
	memoryAge = 2 * time.Hour
)

// memory implements shared.Memory in Redis. Each value is a hash with the value, its size, and a
// field for each key that names the value. Each key has the id of its value, or "" if two values
// claimed it. A sorted set has the values by their last use, and a counter the size of all.
type memory struct {
	client *client
	max    int                // bytes
	local  shared.LocalMemory // of this node, for when it is alone
}

// Put implements shared.Memory.
func (m *memory) Put(ctx context.Context, id shared.Key, value []byte, keys []shared.Key) {
	if len(keys) == 0 || len(value) > shared.MaxValue {
		return
	}
	m.local.Put(ctx, id, value, keys)
	names := append(m.names(keys), m.client.key("memory"), m.client.key("memory:bytes"))
	m.try(ctx, func(ctx context.Context, server rueidis.Client) error {
		return putValue.Exec(ctx, server, names, []string{
			rueidis.BinaryString(value), text(id), m.client.key("memory:value:"), milliseconds(memoryAge), strconv.Itoa(m.max),
		}).Error()
	})
}

// Get implements shared.Memory.
func (m *memory) Get(ctx context.Context, keys []shared.Key) [][]byte {
	values := m.local.Get(ctx, keys)
	if len(keys) == 0 {
		return values
	}
	names := append(m.names(keys), m.client.key("memory"))
	m.try(ctx, func(ctx context.Context, server rueidis.Client) error {
		reply, err := getValues.Exec(ctx, server, names, []string{m.client.key("memory:value:"), milliseconds(memoryAge)}).ToArray()
		if err != nil {
			return err
		}
		ids, err := reply[0].ToArray()
		if err != nil {
			return err
		}
		found, err := reply[1].AsStrMap()
		if err != nil {
			return err
		}
		for i := range ids {
			// What Redis does not know may have been put while it was not there.
			if id, err := ids[i].ToString(); err == nil {
				values[i] = nil
				if value, ok := found[id]; ok {
					values[i] = []byte(value)
				}
			}
		}
		return nil
	})
	return values
}

// try calls f if the server answers. Otherwise the node is alone.
func (m *memory) try(ctx context.Context, f func(context.Context, rueidis.Client) error) {
	if m.client.answers.Load() {
		err := m.client.do(ctx, f)
		if err == nil || ctx.Err() != nil {
			return
		}
	}
	m.client.Alone("memory")
}

// names returns the keys in Redis, with room for two more.
func (m *memory) names(keys []shared.Key) []string {
	names := make([]string, len(keys), len(keys)+2)
	for i, k := range keys {
		names[i] = m.client.key("memory:key:" + text(k))
	}
	return names
}

func text(k shared.Key) string { return base64.RawURLEncoding.EncodeToString(k[:]) }

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// putValue remembers the value ARGV[1] with the id ARGV[2] under all of KEYS but the
// last two, which are the sorted set and the counter. ARGV[3] is the prefix of values,
// ARGV[4] their age in milliseconds, and ARGV[5] the bound of the size of all, in bytes.
var putValue = rueidis.NewLuaScript(`
local set, counter = KEYS[#KEYS - 1], KEYS[#KEYS]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function forget(member)
	local id, size = string.match(member, '^(.*):(%d+)$')
	for _, field in ipairs(redis.call('HKEYS', ARGV[3] .. id)) do
		if field ~= 'value' and field ~= 'size' and redis.call('GET', field) == id then redis.call('DEL', field) end
	end
	redis.call('DEL', ARGV[3] .. id)
	redis.call('ZREM', set, member)
	return redis.call('DECRBY', counter, size)
end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', now - ARGV[4], 'LIMIT', 0, 100)) do forget(member) end

local value, size = ARGV[3] .. ARGV[2], #ARGV[1] + 500 * (#KEYS - 2)
size = redis.call('HGET', value, 'size') or size
if redis.call('ZADD', set, now, ARGV[2] .. ':' .. size) == 1 then
	local all = redis.call('INCRBY', counter, size)
	while all > tonumber(ARGV[5]) and redis.call('ZCARD', set) > 1 do all = forget(redis.call('ZRANGE', set, 0, 0)[1]) end
end
redis.call('HSET', value, 'value', ARGV[1], 'size', size)
for i = 1, #KEYS - 2 do
	local other = redis.call('GET', KEYS[i])
	if other and other ~= ARGV[2] then
		redis.call('SET', KEYS[i], '', 'PX', ARGV[4])
	else
		redis.call('SET', KEYS[i], ARGV[2], 'PX', ARGV[4])
		redis.call('HSET', value, KEYS[i], '')
	end
end
redis.call('PEXPIRE', value, ARGV[4])
return 1`)

// getValues returns the id of the value of each of KEYS but the last, which is the sorted
// set, and the values by their ids. ARGV[1] is the prefix of values, and ARGV[2] their
// age in milliseconds.
var getValues = rueidis.NewLuaScript(`
local set = KEYS[#KEYS]
local ids, values, seen = {}, {}, {}
for i = 1, #KEYS - 1 do
	local id = redis.call('GET', KEYS[i])
	ids[i] = id
	if id and id ~= '' then
		local key = ARGV[1] .. id
		local value = redis.call('HMGET', key, 'value', 'size')
		if value[1] and not seen[id] then
			seen[id] = true
			values[#values + 1] = id
			values[#values + 1] = value[1]
		end
		if value[1] and redis.call('PTTL', KEYS[i]) < ARGV[2] / 2 then
			local time = redis.call('TIME')
			redis.call('PEXPIRE', KEYS[i], ARGV[2])
			redis.call('PEXPIRE', key, ARGV[2])
			redis.call('ZADD', set, time[1] * 1000 + math.floor(time[2] / 1000), id .. ':' .. value[2])
		end
	end
end
return {ids, values}`)

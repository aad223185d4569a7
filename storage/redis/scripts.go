package redis

import "github.com/redis/rueidis"

// The scripts of the ledger. KEYS[1] is the organisation's hash: granted, spent and
// available, which is granted - spent - reserved. KEYS[2] is the reservation's hash:
// org, amount, charged, and held, which is what is reserved and not charged. Numbers
// are billionths of a dollar. Sums are made by HINCRBY in 64 bits; Lua's own numbers
// are exact up to 2^53, which bounds the amounts of one call.

// grant adds ARGV[1] to what organisation ARGV[3] may spend; with ARGV[4] only where
// nothing was granted before. ARGV[2] is -ARGV[1]: a sum that is out of range changes
// nothing.
var grant = rueidis.NewLuaScript(sameGeneration + `
local granted = redis.call('HEXISTS', KEYS[1], 'granted')
if granted ~= redis.call('SISMEMBER', KEYS[2], ARGV[3]) then
	return redis.error_reply('Redis has lost the account of ' .. ARGV[3] .. ': maxmemory-policy must be noeviction; restore it, or let the account begin again by: redis-cli SREM ' .. KEYS[2] .. ' ' .. ARGV[3])
end
if ARGV[4] == 'first' and granted == 1 then return 0 end
local sum = redis.pcall('HINCRBY', KEYS[1], 'granted', ARGV[1])
if type(sum) == 'table' then return sum end
sum = redis.pcall('HINCRBY', KEYS[1], 'available', ARGV[1])
if type(sum) == 'table' then
	redis.call('HINCRBY', KEYS[1], 'granted', ARGV[2])
	return sum
end
redis.call('SADD', KEYS[2], ARGV[3])
return 1`)

// reserve sets ARGV[2] of organisation ARGV[1] aside, for the node whose
// reservations are KEYS[3]; ARGV[3] is -ARGV[2]. It returns 1, 0 for too little, or
// -1 for an id in use.
var reserve = rueidis.NewLuaScript(sameGeneration + `
local made = redis.call('HMGET', KEYS[2], 'org', 'amount')
if made[1] then
	if made[1] == ARGV[1] and made[2] == ARGV[2] then return 1 end
	return -1
end
if redis.call('HEXISTS', KEYS[1], 'granted') == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], 'available', ARGV[3]) < 0 then
	redis.call('HINCRBY', KEYS[1], 'available', ARGV[2])
	return 0
end
redis.call('HSET', KEYS[2], 'org', ARGV[1], 'amount', ARGV[2], 'charged', '0', 'held', ARGV[2])
redis.call('SADD', KEYS[3], KEYS[2])
return 1`)

// charge makes ARGV[2] what the call of organisation ARGV[1] has cost. A reservation
// that was made without Redis, or lost to another node, has nothing set aside.
var charge = rueidis.NewLuaScript(sameGeneration + `
local made = redis.call('HMGET', KEYS[2], 'amount', 'charged', 'held')
local amount, charged, held = tonumber(made[1] or 0), tonumber(made[2] or 0), tonumber(made[3] or 0)
local total = tonumber(ARGV[2])
local holds = math.max(amount - total, 0)
local function text(n) return string.format('%.0f', n) end
redis.call('HINCRBY', KEYS[1], 'spent', text(total - charged))
redis.call('HINCRBY', KEYS[1], 'available', text(held - holds - (total - charged)))
redis.call('HSET', KEYS[2], 'org', ARGV[1], 'amount', text(amount), 'charged', ARGV[2], 'held', text(holds))
redis.call('SADD', KEYS[3], KEYS[2])
return 1`)

// release ends a reservation.
var release = rueidis.NewLuaScript(sameGeneration + `
local held = redis.call('HGET', KEYS[2], 'held')
if held then
	redis.call('HINCRBY', KEYS[1], 'available', held)
	redis.call('DEL', KEYS[2])
end
redis.call('SREM', KEYS[3], KEYS[2])
return 1`)

// expire frees what a node that died has reserved: KEYS[1] is its lease, KEYS[2] its
// reservations, KEYS[3] the nodes, ARGV[1] its name, and ARGV[2] the prefix of
// organisations. What was charged is remembered for ARGV[3] seconds, in case that the
// node lives and was only cut off. It returns how many reservations are left.
var expire = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for _, key in ipairs(redis.call('SPOP', KEYS[2], 500)) do
	local made = redis.call('HMGET', key, 'org', 'held')
	if made[1] then
		redis.call('HINCRBY', ARGV[2] .. made[1], 'available', made[2])
		redis.call('HSET', key, 'amount', '0', 'held', '0')
		redis.call('EXPIRE', key, ARGV[3])
	end
end
local left = redis.call('SCARD', KEYS[2])
if left == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return left`)

package redis

import (
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// The scripts of the ledger. An account is a hash and a suffix of its fields: granted, spent
// and available, which is granted - spent - reserved. An organisation's credits are a hash
// without a suffix. The values of a budget in a window are suffixes in a hash to which
// nothing is granted.
//
// A reservation is a hash too, with these fields. org, amount and charged. held: what is
// reserved and not charged. lost: what is spent if the node dies. accounts: "" if credits are
// the only account. kept: what others must know to end the reservation. set: the key of the
// set that has the reservation, only if the reservation outlives its node. dead: what the
// node has charged, only if the node is dead. charged is then at least what is lost, and the
// set of the node's dead reservations has the reservation until it is settled.
//
// Numbers are billionths of a dollar. Sums are made by HINCRBY in 64 bits; Lua's own numbers
// are exact up to 2^53, which bounds the amounts of one call and the limits of budgets.

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

// accounts begins the scripts of a reservation. KEYS[1] is the reservation's hash. KEYS[2] is
// the set of the node's reservations. Then follow the hashes of the accounts, and the hashes
// of the earlier steps of the accounts' rolling windows. Each account has four arguments: its
// suffix; its limit, "" for credits; the millisecond at which the hash may be forgotten, 0 for
// never; and how many earlier steps there are. first is how many arguments come before the
// arguments of the accounts.
func accounts(first int) string {
	return fmt.Sprintf(sameGeneration+`
local accounts, earlier, at = {}, {}, %d
local n = (#ARGV - 2 - at) / 4
local step = 2 + n
for i = 1, n do
	accounts[i] = {key = KEYS[2 + i], suffix = ARGV[at + 1], limit = ARGV[at + 2], ends = ARGV[at + 3]}
	earlier[i] = {}
	for j = 1, tonumber(ARGV[at + 4]) do
		step = step + 1
		earlier[i][j] = KEYS[step]
	end
	at = at + 4
end
local function add(a, field, n)
	redis.call('HINCRBY', a.key, field .. a.suffix, n)
	if a.ends ~= '0' then redis.call('PEXPIREAT', a.key, a.ends) end
end
local function kept()
	if #accounts == 1 and accounts[1].limit == '' then return '' end
	return cjson.encode(accounts)
end
`, first)
}

// decimal defines text, which writes a number of a script.
const decimal = `
local function text(n) return string.format('%.0f', n) end
`

// bury defines bury, which moves a reservation to the dead reservations of its node. It keeps
// what the node has charged until a node that was only cut off charges more, or until Settle.
var bury = fmt.Sprintf(`
local function bury(key, set, charged)
	redis.call('HSET', key, 'dead', charged)
	redis.call('EXPIRE', key, %[1]d)
	redis.call('SREM', set, key)
	redis.call('SADD', set .. ':dead', key)
	redis.call('EXPIRE', set .. ':dead', %[1]d)
end
`, tombstone/time.Second)

// reserve sets ARGV[2] aside in all accounts, for organisation ARGV[1]; ARGV[3] is -ARGV[2],
// and ARGV[4] is spent if the node dies. ARGV[5] bounds the fields of the hash of a budget
// without an end; each value has two fields. ARGV[6] is what is kept of a reservation that does
// not end with its node, and ARGV[7] is "" unless the reservation outlives its node.
// It returns 0; or the number of the first account that has too little; or -1 for an id in
// use; or -1 less the number of the account for which the hash has no room.
var reserve = rueidis.NewLuaScript(accounts(7) + `
local made = redis.call('HMGET', KEYS[1], 'org', 'amount', 'accounts')
if made[1] then
	if made[1] == ARGV[1] and made[2] == ARGV[2] and (made[3] or '') == kept() then return 0 end
	return -1
end
for i, a in ipairs(accounts) do
	local available = redis.call('HGET', a.key, 'available' .. a.suffix)
	if a.limit == '' and not available then return i end
	if a.limit ~= '' and a.ends == '0' and not available and redis.call('HLEN', a.key) >= tonumber(ARGV[5]) then return -1 - i end
	local left = tonumber(available or 0) + tonumber(a.limit ~= '' and a.limit or 0)
	for _, key in ipairs(earlier[i]) do
		left = left + tonumber(redis.call('HGET', key, 'available' .. a.suffix) or 0)
	end
	if left < tonumber(ARGV[2]) then return i end
end
for _, a in ipairs(accounts) do add(a, 'available', ARGV[3]) end
redis.call('HSET', KEYS[1], 'org', ARGV[1], 'amount', ARGV[2], 'charged', '0', 'held', ARGV[2], 'lost', ARGV[4], 'accounts', kept())
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'kept', ARGV[6]) end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'set', KEYS[2]) end
redis.call('SADD', KEYS[2], KEYS[1])
return 0`)

// charge makes ARGV[2] what the call of organisation ARGV[1] has cost. A reservation
// that was made without Redis has nothing set aside, and ARGV[3] and ARGV[4] are its lost and
// kept. If the node of the reservation seems dead, or is dead (ARGV[5] is not ""), at least
// what is lost stays spent.
var charge = rueidis.NewLuaScript(accounts(5) + decimal + bury + `
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'lost', ARGV[3], 'kept', ARGV[4]) end
local made = redis.call('HMGET', KEYS[1], 'amount', 'charged', 'held', 'lost', 'dead')
local amount, charged, held = tonumber(made[1] or 0), tonumber(made[2] or 0), tonumber(made[3] or 0)
local total, dead = tonumber(ARGV[2]), made[5] or ARGV[5] ~= ''
if dead then
	total, amount = math.max(total, tonumber(made[4] or 0)), 0
end
local holds = math.max(amount - total, 0)
for _, a in ipairs(accounts) do
	add(a, 'spent', text(total - charged))
	add(a, 'available', text(held - holds - (total - charged)))
end
redis.call('HSET', KEYS[1], 'org', ARGV[1], 'amount', text(amount), 'charged', text(total), 'held', text(holds), 'accounts', kept())
if dead then bury(KEYS[1], KEYS[2], ARGV[2]) else redis.call('SADD', KEYS[2], KEYS[1]) end
return 1`)

// release ends a reservation. ARGV[1] is what the node has charged for it.
var release = rueidis.NewLuaScript(accounts(1) + decimal + `
local made = redis.call('HMGET', KEYS[1], 'held', 'charged', 'dead')
if made[1] then
	local more = 0
	if made[3] then more = tonumber(ARGV[1]) - tonumber(made[2]) end
	for _, a in ipairs(accounts) do
		if more ~= 0 then add(a, 'spent', text(more)) end
		add(a, 'available', text(tonumber(made[1]) - more))
		if a.limit ~= '' and a.ends == '0' and redis.call('HGET', a.key, 'available' .. a.suffix) == '0' then
			redis.call('HDEL', a.key, 'available' .. a.suffix, 'spent' .. a.suffix) -- nothing is spent
		end
	end
	redis.call('DEL', KEYS[1])
	if made[3] then redis.call('SREM', KEYS[2] .. ':dead', KEYS[1]) end
end
redis.call('SREM', KEYS[2], KEYS[1])
return 1`)

// spend defines spend, which makes total the final cost of a reservation. prefix is the Lua
// expression of the prefix of organisations. spend returns what was charged before, false if
// there is no reservation.
func spend(prefix string) string {
	return decimal + `
local function spend(key, total)
	local made = redis.call('HMGET', key, 'org', 'held', 'accounts', 'charged', 'lost')
	if not made[1] then return false end
	local charged = tonumber(made[4])
	if not total then total = math.max(charged, tonumber(made[5] or 0)) end
	local accounts = {{key = ` + prefix + ` .. made[1], suffix = ''}}
	if made[3] and made[3] ~= '' then accounts = cjson.decode(made[3]) end
	for _, a in ipairs(accounts) do
		if redis.call('EXISTS', a.key) == 1 then
			redis.call('HINCRBY', a.key, 'spent' .. a.suffix, text(total - charged))
			local left = redis.call('HINCRBY', a.key, 'available' .. a.suffix, text(tonumber(made[2]) - (total - charged)))
			if total == 0 and a.ends == '0' and a.limit ~= '' and tonumber(left) == 0 then
				redis.call('HDEL', a.key, 'available' .. a.suffix, 'spent' .. a.suffix) -- nothing is spent
			end
		end
	end
	redis.call('HSET', key, 'amount', '0', 'held', '0', 'charged', text(total))
	return made[4]
end
`
}

// end ends a reservation that has outlived its node, and spends ARGV[1]. ARGV[2] is the prefix
// of organisations. It returns what is kept, with the accounts; "" if there is no such
// reservation.
var end = rueidis.NewLuaScript(sameGeneration + spend("ARGV[2]") + `
local made = redis.call('HMGET', KEYS[1], 'set', 'kept', 'dead')
if not made[1] or made[3] then return '' end
spend(KEYS[1], tonumber(ARGV[1]))
redis.call('SREM', made[1], KEYS[1])
redis.call('DEL', KEYS[1])
return made[2]`)

// expire ends the reservations of a dead node, and spends what each call can have cost.
// KEYS[1] is the node's lease, KEYS[2] its reservations, KEYS[3] the nodes, ARGV[1] the node's
// name, and ARGV[2] the prefix of organisations. It returns how many reservations are left.
var expire = rueidis.NewLuaScript(spend("ARGV[2]") + bury + `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for _, key in ipairs(redis.call('SPOP', KEYS[2], 500)) do
	local charged = spend(key)
	if charged then bury(key, KEYS[2], charged) end
end
local left = redis.call('SCARD', KEYS[2])
if left == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return left`)

// leaseLasts returns 1 if a lease lasts, else 0.
var leaseLasts = rueidis.NewLuaScript(sameGeneration + `
return redis.call('EXISTS', KEYS[1])`)

// dead returns up to 500 dead reservations of a node. Each has five fields: its key, its
// organisation, what the node has charged, what is lost, and what is kept, "" for a reservation
// that has ended with its node.
var dead = rueidis.NewLuaScript(sameGeneration + `
local list = {}
while #list == 0 and redis.call('SCARD', KEYS[1] .. ':dead') > 0 do
	for _, key in ipairs(redis.call('SRANDMEMBER', KEYS[1] .. ':dead', 500)) do
		local made = redis.call('HMGET', key, 'org', 'dead', 'lost', 'kept')
		if made[1] then
			for _, field in ipairs({key, made[1], made[2], made[3] or '0', made[4] or ''}) do list[#list + 1] = field end
		else
			redis.call('SREM', KEYS[1] .. ':dead', key)
		end
	end
end
return list`)

// settle ends a dead reservation of a node, and spends ARGV[1]. ARGV[2] is the prefix of
// organisations.
var settle = rueidis.NewLuaScript(sameGeneration + spend("ARGV[2]") + `
spend(KEYS[1], tonumber(ARGV[1]))
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2] .. ':dead', KEYS[1])
return 1`)

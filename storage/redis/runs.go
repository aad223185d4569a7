package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirhq/weir/storage/shared"
)

const (
	// keepDead is how long a run can be read after its node died. The run's events go sooner.
	keepDead = 24 * time.Hour
	// pageEvents is how many events are read at a time.
	pageEvents = 500
)

// runs are the responses that nodes generate in the background. Each response is a hash, and
// a list of the response's events.
type runs struct {
	client  *client
	wasAway func() bool
}

func (r *runs) keys(run shared.Key) []string {
	key := r.client.key("run:" + text(run))
	return []string{key, key + ":events"}
}

// Publish implements shared.Runs.
func (r *runs) Publish(ctx context.Context, run shared.Key, news shared.RunNews) (reply shared.RunReply, err error) {
	if !r.client.answers.Load() {
		return reply, unavailable(errNoAnswer)
	}
	keep, keepEvents, flag := keepDead, r.client.Lease+shared.KeepRuns, ""
	switch {
	case news.Ended:
		keep, keepEvents, flag = shared.KeepRuns, shared.KeepRuns, "ended"
	case news.Trimmed:
		flag = "trimmed"
	}
	args := []string{rueidis.BinaryString(news.State), strconv.Itoa(news.From), flag, milliseconds(keep), milliseconds(keepEvents)}
	for _, e := range news.Events {
		args = append(args, rueidis.BinaryString(e))
	}
	err = r.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		known, err := publishRun.Exec(ctx, server, r.keys(run), args).AsIntSlice()
		if err == nil {
			reply = shared.RunReply{Known: int(known[0]), Cancelled: known[1] == 1}
		}
		return err
	})
	return reply, err
}

// Read implements shared.Runs.
func (r *runs) Read(ctx context.Context, run shared.Key, from int) (found *shared.Run, err error) {
	if !r.client.answers.Load() {
		return nil, unavailable(errNoAnswer)
	}
	err = r.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		reply, err := readRun.Exec(ctx, server, r.keys(run), []string{strconv.Itoa(from), strconv.Itoa(from + pageEvents - 1)}).AsStrSlice()
		if err != nil || len(reply) == 0 {
			return err
		}
		silence, err := strconv.ParseInt(reply[1], 10, 64)
		if err != nil {
			return err
		}
		found = &shared.Run{State: []byte(reply[0]), Silence: time.Duration(silence) * time.Millisecond, Ended: reply[2] == "1", Trimmed: reply[3] == "1"}
		for _, e := range reply[4:] {
			found.Events = append(found.Events, []byte(e))
		}
		return nil
	})
	if found != nil { // no node could publish while Redis was away
		found.Dead = !found.Ended && found.Silence > r.client.Lease && !r.wasAway()
	}
	return found, err
}

// Cancel implements shared.Runs.
func (r *runs) Cancel(ctx context.Context, run shared.Key) error {
	_, err := r.client.run(ctx, cancelRun, r.keys(run)[:1])
	return err
}

// Forget implements shared.Runs.
func (r *runs) Forget(ctx context.Context, run shared.Key) error {
	return r.client.do(ctx, func(ctx context.Context, server rueidis.Client) error {
		return server.Do(ctx, server.B().Del().Key(r.keys(run)...).Build()).Error()
	})
}

// publishRun adds to the run KEYS[1] the state ARGV[1], unless the state is empty, and to the
// run's events KEYS[2] the arguments after ARGV[5]. ARGV[2] is the number of the first of these
// events. ARGV[3] is empty, `ended` or `trimmed`; ARGV[4] and ARGV[5] are for how many
// milliseconds the hash and the events are kept. It returns how many events there are,
// -1 where the state is missing, and 1 if the run is to end.
var publishRun = rueidis.NewLuaScript(`
local time = redis.call('TIME')
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'state', ARGV[1]) end
redis.call('HSET', KEYS[1], 'seen', time[1] * 1000 + math.floor(time[2] / 1000))
if ARGV[3] == 'trimmed' then
	redis.call('HSET', KEYS[1], 'trimmed', '1')
	redis.call('DEL', KEYS[2])
end
local known, from = redis.call('LLEN', KEYS[2]), tonumber(ARGV[2])
if known >= from then
	for i = 6 + known - from, #ARGV do known = redis.call('RPUSH', KEYS[2], ARGV[i]) end
end
if ARGV[3] == 'ended' and known == from + #ARGV - 5 then redis.call('HSET', KEYS[1], 'ended', '1') end
if redis.call('HEXISTS', KEYS[1], 'state') == 0 then known = -1 end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return {known, redis.call('HEXISTS', KEYS[1], 'cancelled')}`)

// readRun returns the state of the run KEYS[1], for how many milliseconds the run's node has
// been silent, whether the run ended, whether it was trimmed, and its events from ARGV[1] to
// ARGV[2]. It returns an empty list for a run without a state.
var readRun = rueidis.NewLuaScript(`
local run = redis.call('HMGET', KEYS[1], 'state', 'seen', 'ended', 'trimmed')
if not run[1] then return {} end
local time = redis.call('TIME')
local reply = {run[1], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) - run[2]), run[3] or '0', run[4] or '0'}
if tonumber(ARGV[1]) >= 0 then
	for _, event in ipairs(redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[2])) do reply[#reply + 1] = event end
end
return reply`)

// cancelRun asks the node of the run KEYS[1] to end it.
var cancelRun = rueidis.NewLuaScript(`
if redis.call('HEXISTS', KEYS[1], 'state') == 1 then redis.call('HSET', KEYS[1], 'cancelled', '1') end
return 1`)

// Interface guards
var _ shared.Runs = (*runs)(nil)

// The Lua scripts: each runs atomically in Redis, on keys of one slot. Time is Redis's own, so that servers' clocks need not agree.

export interface Script {
  readonly name: string;
  readonly lua: string;
}
const script = (name: string, lua: string): Script => ({ name, lua });

const NOW_MS = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** KEYS: key, bucket. ARGV: requests per second, burst. Returns the record's fields, then the milliseconds to wait (0: go on). */
export const AUTHENTICATE = script(
  'authenticate',
  `
${NOW_MS}
local record = redis.call('HMGET', KEYS[1], 'hash', 'ownerId', 'name', 'revokedAt')
if not record[1] then return {false} end
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[2], 'tokens', 'atMs')
-- A clock that was set back must not take tokens away: the key would be refused until the clock is where it was.
local elapsed = math.max(0, now - (tonumber(bucket[2]) or now))
local tokens = math.min(burst, (tonumber(bucket[1]) or burst) + elapsed * rate / 1000)
local waitMs = 0
if tokens >= 1 then
  tokens = tokens - 1
else
  waitMs = math.ceil((1 - tokens) * 1000 / rate)
end
redis.call('HSET', KEYS[2], 'tokens', tostring(tokens), 'atMs', now)
redis.call('PEXPIRE', KEYS[2], 60000)
redis.call('HSET', KEYS[1], 'lastUsedAt', now)
return {record[1], record[2], record[3], record[4] or '', waitMs}`,
);

/** KEYS: key. ARGV: field, value, ... Returns 0 when the key exists already. */
export const CREATE_KEY = script(
  'create-key',
  `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
);

/** KEYS: live, key. ARGV: session id, limit, ttl ms. Returns {1, 0 or, for a revoked key, -1, sessions now, ms until a slot frees itself}. */
export const ACQUIRE_SLOT = script(
  'acquire-slot',
  `
${NOW_MS}
if redis.call('HEXISTS', KEYS[2], 'revokedAt') == 1 then return {-1, 0, 0} end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- Slots that end later than any can were taken before the clock was set back.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. (now + tonumber(ARGV[3])), '+inf')) do
  redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), id)
end
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
local count = redis.call('ZCARD', KEYS[1])
if not held and count >= tonumber(ARGV[2]) then
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, count, first[2] and (tonumber(first[2]) - now) or 1000}
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, held and count or count + 1, 0}`,
);

/** KEYS: live. ARGV: ttl ms, then session ids. Keeps slots alive, also those that had expired while Redis could not be reached. */
export const TOUCH_SLOTS = script(
  'touch-slots',
  `
${NOW_MS}
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV - 1`,
);

/** KEYS: live. Returns how many slots are held. */
export const COUNT_SLOTS = script(
  'count-slots',
  `
${NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZCARD', KEYS[1])`,
);

/**
 * KEYS: token, claim. ARGV: session id, server id, ttl ms, session id that may be replaced ('' for none).
 * A refusal leaves word for a holder on another server, which hears of it at its next touch.
 * Returns {'unknown'}, {'in-use', session id, server id} or {'claimed', grant, milliseconds that the token still lives}.
 */
export const CLAIM_TOKEN = script(
  'claim-token',
  `
local grant = redis.call('GET', KEYS[1])
if not grant then return {'unknown'} end
local holder = redis.call('HMGET', KEYS[2], 'sessionId', 'serverId')
if holder[1] and holder[1] ~= ARGV[1] and holder[1] ~= ARGV[4] then
  if holder[2] ~= ARGV[2] then redis.call('HSET', KEYS[2], 'wanted', 1) end
  return {'in-use', holder[1], holder[2]}
end
redis.call('HSET', KEYS[2], 'sessionId', ARGV[1], 'serverId', ARGV[2])
redis.call('HDEL', KEYS[2], 'wanted')
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'claimed', grant, tostring(redis.call('PTTL', KEYS[1]))}`,
);

/** KEYS: claim. ARGV: session id, server id, ttl ms. Returns 0 when somebody else holds the token, 2 when somebody on another server asked for it since the last touch, else 1. A claim that had expired is taken again. */
export const TOUCH_CLAIM = script(
  'touch-claim',
  `
local holder = redis.call('HGET', KEYS[1], 'sessionId')
if holder and holder ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'sessionId', ARGV[1], 'serverId', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1 + redis.call('HDEL', KEYS[1], 'wanted')`,
);

/** KEYS: claim. ARGV: session id. Releases it if it is ours. */
export const RELEASE_CLAIM = script(
  'release-claim',
  `
if redis.call('HGET', KEYS[1], 'sessionId') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`,
);

/** KEYS: history, records. ARGV: id, start time s, record. */
export const WRITE_HISTORY = script(
  'write-history',
  `
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return 1`,
);

/** KEYS: history, records. ARGV: oldest start time kept s, most to remove. */
export const PRUNE_HISTORY = script(
  'prune-history',
  `
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
if #old == 0 then return 0 end
redis.call('ZREM', KEYS[1], unpack(old))
redis.call('HDEL', KEYS[2], unpack(old))
return #old`,
);

/** KEYS: history, records. ARGV: from s, until s, skip, count. Returns {ids, start times, records}. */
export const READ_HISTORY = script(
  'read-history',
  `
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', ARGV[3], ARGV[4])
if #found == 0 then return {{}, {}, {}} end
local ids, scores = {}, {}
for i = 1, #found, 2 do ids[#ids + 1] = found[i]; scores[#scores + 1] = found[i + 1] end
return {ids, scores, redis.call('HMGET', KEYS[2], unpack(ids))}`,
);

// The journal of sessions that run. Beats are told by Redis's clock, for silence; beside them stands how long each session has lasted, by
// its server's monotonic clock, which is what it is accounted by when its server dies.

/** KEYS: beats, records. ARGV: id, record, milliseconds since its begin. */
export const JOURNAL_BEGIN = script(
  'journal-begin',
  `
${NOW_MS}
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], 'ms:' .. ARGV[1], ARGV[3])
return 1`,
);

/** KEYS: beats, records. ARGV: id, milliseconds since its begin, id, ... Only sessions still in the journal get a new beat. */
export const JOURNAL_HEARTBEAT = script(
  'journal-beat',
  `
${NOW_MS}
for i = 1, #ARGV, 2 do
  if redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1 then
    redis.call('ZADD', KEYS[1], now, ARGV[i])
    redis.call('HSET', KEYS[2], 'ms:' .. ARGV[i], ARGV[i + 1])
  end
end
return #ARGV / 2`,
);

/** KEYS: beats, records. ARGV: id. */
export const JOURNAL_END = script(
  'journal-end',
  `
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('HDEL', KEYS[2], ARGV[1], 'ms:' .. ARGV[1])`,
);

/**
 * KEYS: beats, records. ARGV: silence after which a session counts as lost, ms; 0: all of them.
 * Returns id, last beat, milliseconds it had lasted then ('' where an earlier version began it), record, ...
 */
export const JOURNAL_LOST = script(
  'journal-lost',
  `
${NOW_MS}
local before = ARGV[1] == '0' and '+inf' or now - tonumber(ARGV[1])
local lost = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before, 'WITHSCORES', 'LIMIT', 0, 500)
local out = {}
for i = 1, #lost, 2 do
  local found = redis.call('HMGET', KEYS[2], lost[i], 'ms:' .. lost[i])
  if found[1] then
    out[#out + 1] = lost[i]; out[#out + 1] = lost[i + 1]; out[#out + 1] = found[2] or ''; out[#out + 1] = found[1]
  else
    redis.call('ZREM', KEYS[1], lost[i])
  end
end
return out`,
);

/** KEYS: waiting, data, counter. ARGV: job id, data, capacity. Returns its place (0 is next), or -1 when the queue is full. */
export const ENQUEUE_JOB = script(
  'enqueue-job',
  `
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[3]), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return redis.call('ZRANK', KEYS[1], ARGV[1])`,
);

/**
 * KEYS: waiting, running, data, attempts, holders. ARGV: server id, lease ms.
 * Takes the next job, first one whose holder's lease ran out. Returns {} or {id, data, times begun}.
 */
export const TAKE_JOB = script(
  'take-job',
  `
${NOW_MS}
-- Leases that end later than any can were taken before the clock was set back.
for _, held in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. (now + tonumber(ARGV[2])), '+inf')) do
  redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), held)
end
local id = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)[1]
if not id then
  local popped = redis.call('ZPOPMIN', KEYS[1])
  id = popped[1]
end
if not id then return {} end
local data = redis.call('HGET', KEYS[3], id)
if not data then
  redis.call('ZREM', KEYS[2], id)
  return {id, '', 0}
end
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), id)
redis.call('HSET', KEYS[5], id, ARGV[1])
return {id, data, redis.call('HINCRBY', KEYS[4], id, 1)}`,
);

/** KEYS: running, holders. ARGV: job id, server id, lease ms. Returns 0 when the job is no longer ours. */
export const EXTEND_JOB = script(
  'extend-job',
  `
${NOW_MS}
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[3]), ARGV[1])
return 1`,
);

/** KEYS: waiting, running, data, attempts, holders. ARGV: job id. Forgets a job, whatever its state. */
export const FINISH_JOB = script(
  'finish-job',
  `
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1])
redis.call('HDEL', KEYS[5], ARGV[1])
return redis.call('HDEL', KEYS[3], ARGV[1])`,
);

/** KEYS: running, holders. ARGV: server id. Ends the leases of a server that has just started: its last run cannot still hold them. */
export const RECLAIM_JOBS = script(
  'reclaim-jobs',
  `
local holders = redis.call('HGETALL', KEYS[2])
local reclaimed = 0
for i = 1, #holders, 2 do
  if holders[i + 1] == ARGV[1] then
    redis.call('ZADD', KEYS[1], 'XX', 0, holders[i])
    reclaimed = reclaimed + 1
  end
end
return reclaimed`,
);

/** KEYS: hash. ARGV: field, value, ... Writes only to a record that is there: one deleted meanwhile stays deleted. */
export const UPDATE_EXISTING = script(
  'update-existing',
  `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
);

/** KEYS: agents. ARGV: agent id, record, most agents of one owner. Returns 0 at the limit. */
export const CREATE_AGENT = script(
  'create-agent',
  `
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
return redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])`,
);

/** KEYS: agents. ARGV: agent id, the record as it was read, the new one. Returns 0 when somebody changed it since, -1 when it is gone. */
export const REPLACE_AGENT = script(
  'replace-agent',
  `
local current = redis.call('HGET', KEYS[1], ARGV[1])
if not current then return -1 end
if current ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`,
);

// The Lua scripts. Each runs atomically in Redis, on keys of one slot. They use the clock of Redis,
// so the clocks of the servers need not agree.

/** A Lua script; `name` is for logs and metrics. */
export interface Script {
  readonly name: string;
  readonly lua: string;
}
/** Names a Lua script. */
export const script = (name: string, lua: string): Script => ({ name, lua });

/** Sets the local `now`, in milliseconds. */
export const NOW_MS = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/**
 * Looks up an API key and takes one token of its bucket. KEYS: key, bucket. ARGV: requests per
 * second, burst. Returns hash, owner id, name, revokedAt, milliseconds to wait (0: allowed), and role.
 */
export const AUTHENTICATE = script(
  'authenticate',
  `
${NOW_MS}
local record = redis.call('HMGET', KEYS[1], 'hash', 'ownerId', 'name', 'revokedAt', 'role')
if not record[1] then return {false} end
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[2], 'tokens', 'atMs')
-- After the clock was set back, elapsed would be negative and the key refused until the old time.
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
return {record[1], record[2], record[3], record[4] or '', waitMs, record[5] or ''}`,
);

/** Creates a record. KEYS: key. ARGV: field, value, ... Returns 0 when it exists already. */
export const CREATE_KEY = script(
  'create-key',
  `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
);

/**
 * Takes a session slot of an API key. KEYS: live, key. ARGV: session id, limit, ttl ms. Returns
 * {result, live sessions, milliseconds until a slot expires}; result is 1 (taken), 0 (limit) or -1
 * (revoked key).
 */
export const ACQUIRE_SLOT = script(
  'acquire-slot',
  `
${NOW_MS}
if redis.call('HEXISTS', KEYS[2], 'revokedAt') == 1 then return {-1, 0, 0} end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
-- A slot with a later expiry than now + ttl was taken before the clock was set back.
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

/**
 * Extends slots, also those that expired while Redis was unreachable. KEYS: live. ARGV: ttl ms,
 * session ids.
 */
export const TOUCH_SLOTS = script(
  'touch-slots',
  `
${NOW_MS}
local expiry = now + tonumber(ARGV[1])
-- One call for many: each costs more than what it does, and is written to the log by itself.
for from = 2, #ARGV, 1000 do
  local slots = {}
  for i = from, math.min(from + 999, #ARGV) do
    slots[#slots + 1] = expiry
    slots[#slots + 1] = ARGV[i]
  end
  redis.call('ZADD', KEYS[1], unpack(slots))
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV - 1`,
);

/** Counts the slots. KEYS: live. */
export const COUNT_SLOTS = script(
  'count-slots',
  `
${NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZCARD', KEYS[1])`,
);

/**
 * Claims a session token. KEYS: token, claim. ARGV: session id, server id, ttl ms, session id that
 * may be replaced ('' for none). A refusal sets `wanted`, which the holder on another server reads
 * at its next touch. Returns {'unknown'}, {'in-use', session id, server id} or {'claimed', grant,
 * remaining lifetime of the token in ms}.
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

/**
 * Extends a claim, or takes it again when it expired. KEYS: claim. ARGV: session id, server id, ttl
 * ms. Returns 0 when another session holds the token, 2 when another server asked for it since the
 * last touch, else 1.
 */
export const TOUCH_CLAIM = script(
  'touch-claim',
  `
local holder = redis.call('HGET', KEYS[1], 'sessionId')
if holder and holder ~= ARGV[1] then return 0 end
if not holder then redis.call('HSET', KEYS[1], 'sessionId', ARGV[1], 'serverId', ARGV[2]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1 + redis.call('HDEL', KEYS[1], 'wanted')`,
);

/** Releases the claim of a session. KEYS: claim. ARGV: session id. */
export const RELEASE_CLAIM = script(
  'release-claim',
  `
if redis.call('HGET', KEYS[1], 'sessionId') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`,
);

/** Stores a history record. KEYS: history, records. ARGV: id, start time s, record. */
export const WRITE_HISTORY = script(
  'write-history',
  `
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return 1`,
);

/**
 * Removes old records. KEYS: history, records. ARGV: oldest start time to keep s, most to remove.
 */
export const PRUNE_HISTORY = script(
  'prune-history',
  `
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
if #old == 0 then return 0 end
redis.call('ZREM', KEYS[1], unpack(old))
redis.call('HDEL', KEYS[2], unpack(old))
return #old`,
);

/**
 * Reads a page of records. KEYS: history, records. ARGV: from s, until s, skip, count. Returns
 * {ids, start times, records}.
 */
export const READ_HISTORY = script(
  'read-history',
  `
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], ARGV[2], 'WITHSCORES', 'LIMIT', ARGV[3], ARGV[4])
if #found == 0 then return {{}, {}, {}} end
local ids, scores = {}, {}
for i = 1, #found, 2 do ids[#ids + 1] = found[i]; scores[#scores + 1] = found[i + 1] end
return {ids, scores, redis.call('HMGET', KEYS[2], unpack(ids))}`,
);

/**
 * Appends a job. KEYS: waiting, data, counter. ARGV: job id, data, capacity. Returns its position
 * (0 is next), or -1 when the queue is full.
 */
export const ENQUEUE_JOB = script(
  'enqueue-job',
  `
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return -1 end
redis.call('ZADD', KEYS[1], redis.call('INCR', KEYS[3]), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
return redis.call('ZRANK', KEYS[1], ARGV[1])`,
);

/**
 * Takes the next job; jobs whose lease expired come first. KEYS: waiting, running, data, attempts,
 * holders. ARGV: server id, lease ms. Returns {} or {id, data, attempt,
 * faults of its files}.
 */
export const TAKE_JOB = script(
  'take-job',
  `
${NOW_MS}
-- A lease with a later expiry than now + lease was taken before the clock was set back.
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
local faults = tonumber(redis.call('HGET', KEYS[4], id .. ':faults') or 0)
return {id, data, redis.call('HINCRBY', KEYS[4], id, 1), faults}`,
);

/**
 * Extends the lease of a job. KEYS: running, holders. ARGV: job id, server id, lease ms. Returns 0
 * when this server does not hold the job any more.
 */
export const EXTEND_JOB = script(
  'extend-job',
  `
${NOW_MS}
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[3]), ARGV[1])
return 1`,
);

/**
 * Gives a job back, so that any server takes it after the delay; the attempt does not count. KEYS:
 * running, attempts, holders. ARGV: job id, server id, delay ms, and 1 to count a fault of its files.
 * Returns 0 when this server does not hold the job any more.
 */
export const RELEASE_JOB = script(
  'release-job',
  `
${NOW_MS}
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('HINCRBY', KEYS[2], ARGV[1], -1)
if ARGV[4] == '1' then redis.call('HINCRBY', KEYS[2], ARGV[1] .. ':faults', 1) end
redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[3]), ARGV[1])
return 1`,
);

/**
 * Removes a job in any state. KEYS: waiting, running, data, attempts, holders. ARGV: job id, and the
 * server that must hold it ('': whoever does). Returns 0 when it was not removed.
 */
export const FINISH_JOB = script(
  'finish-job',
  `
if ARGV[2] ~= '' and redis.call('HGET', KEYS[5], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[4], ARGV[1], ARGV[1] .. ':faults')
redis.call('HDEL', KEYS[5], ARGV[1])
return redis.call('HDEL', KEYS[3], ARGV[1])`,
);

/**
 * Ends the leases of a server that is dead, or has just started: nobody works on its jobs any more.
 * Should it live after all, it may extend them until another server takes them. KEYS: running,
 * holders. ARGV: server id. Returns their number.
 */
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

/** Notes that a face was deleted now. KEYS: deleted faces. ARGV: face id. */
export const ANNOUNCE_DELETION = script(
  'announce-deletion',
  `
${NOW_MS}
return redis.call('ZADD', KEYS[1], now, ARGV[1])`,
);

/**
 * Faces that were deleted since a time, and those whose files one server, the caller, deletes once
 * more. KEYS: deleted faces. ARGV: time ms, age ms. Returns {now, {id, ...}, {id, ...}}.
 */
export const DELETIONS_SINCE = script(
  'deletions-since',
  `
${NOW_MS}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf')
local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]), 'LIMIT', 0, 10)
for _, id in ipairs(old) do redis.call('ZREM', KEYS[1], id) end
return {now, found, old}`,
);

/** Releases a lock that is held still. KEYS: lock. ARGV: holder. */
export const RELEASE_LOCK = script(
  'release-lock',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`,
);

/** Updates an existing record; a deleted one stays deleted. KEYS: hash. ARGV: field, value, ... */
export const UPDATE_EXISTING = script(
  'update-existing',
  `
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`,
);

/**
 * Creates an agent. KEYS: agents. ARGV: agent id, record, limit of one owner. Returns 0 at the
 * limit.
 */
export const CREATE_AGENT = script(
  'create-agent',
  `
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
return redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2])`,
);

/**
 * Replaces an agent (compare and swap). KEYS: agents. ARGV: agent id, record as read, new record.
 * Returns 0 when the record has changed since, -1 when it was deleted.
 */
export const REPLACE_AGENT = script(
  'replace-agent',
  `
local current = redis.call('HGET', KEYS[1], ARGV[1])
if not current then return -1 end
if current ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`,
);

// The Lua scripts: each runs atomically in Redis, on keys of one slot. Time is Redis's own, so that servers' clocks need not agree.

export interface Script { readonly name: string; readonly lua: string }
const script = (name: string, lua: string): Script => ({ name, lua });

const NOW_MS = `local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** KEYS: key, bucket. ARGV: requests per second, burst. Returns the record's fields, then the milliseconds to wait (0: go on). */
export const AUTHENTICATE = script('authenticate', `
${NOW_MS}
local record = redis.call('HMGET', KEYS[1], 'hash', 'ownerId', 'name', 'revokedAt')
if not record[1] then return {false} end
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local bucket = redis.call('HMGET', KEYS[2], 'tokens', 'atMs')
local tokens = math.min(burst, (tonumber(bucket[1]) or burst) + (now - (tonumber(bucket[2]) or now)) * rate / 1000)
local waitMs = 0
if tokens >= 1 then
  tokens = tokens - 1
else
  waitMs = math.ceil((1 - tokens) * 1000 / rate)
end
redis.call('HSET', KEYS[2], 'tokens', tostring(tokens), 'atMs', now)
redis.call('PEXPIRE', KEYS[2], 60000)
redis.call('HSET', KEYS[1], 'lastUsedAt', now)
return {record[1], record[2], record[3], record[4] or '', waitMs}`);

/** KEYS: key. ARGV: field, value, ... Returns 0 when the key exists already. */
export const CREATE_KEY = script('create-key', `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1`);

/** KEYS: live. ARGV: session id, limit, ttl ms. Returns {1 or 0, sessions now, ms until a slot frees itself}. */
export const ACQUIRE_SLOT = script('acquire-slot', `
${NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local held = redis.call('ZSCORE', KEYS[1], ARGV[1])
local count = redis.call('ZCARD', KEYS[1])
if not held and count >= tonumber(ARGV[2]) then
  local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  return {0, count, first[2] and (tonumber(first[2]) - now) or 1000}
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, held and count or count + 1, 0}`);

/** KEYS: live. ARGV: ttl ms, then session ids. Keeps slots alive, also those that had expired while Redis could not be reached. */
export const TOUCH_SLOTS = script('touch-slots', `
${NOW_MS}
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV - 1`);

/** KEYS: live. Returns how many slots are held. */
export const COUNT_SLOTS = script('count-slots', `
${NOW_MS}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return redis.call('ZCARD', KEYS[1])`);

/**
 * KEYS: token, claim. ARGV: session id, server id, ttl ms, session id that may be replaced ('' for none).
 * Returns {'unknown'}, {'in-use', session id, server id} or {'claimed', grant}.
 */
export const CLAIM_TOKEN = script('claim-token', `
local grant = redis.call('GET', KEYS[1])
if not grant then return {'unknown'} end
local holder = redis.call('HMGET', KEYS[2], 'sessionId', 'serverId')
if holder[1] and holder[1] ~= ARGV[1] and holder[1] ~= ARGV[4] then return {'in-use', holder[1], holder[2]} end
redis.call('HSET', KEYS[2], 'sessionId', ARGV[1], 'serverId', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'claimed', grant}`);

/** KEYS: claim. ARGV: session id, server id, ttl ms. Returns 0 when somebody else holds the token. A claim that had expired is taken again. */
export const TOUCH_CLAIM = script('touch-claim', `
local holder = redis.call('HGET', KEYS[1], 'sessionId')
if holder and holder ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'sessionId', ARGV[1], 'serverId', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1`);

/** KEYS: claim. ARGV: session id. Releases it if it is ours. */
export const RELEASE_CLAIM = script('release-claim', `
if redis.call('HGET', KEYS[1], 'sessionId') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`);

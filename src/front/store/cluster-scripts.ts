// The Lua scripts of the servers that share a Redis: heartbeats, and what dead ones leave behind.
import { NOW_MS, script } from './scripts.ts';

/**
 * A heartbeat of a server. KEYS: beats, rooms, records, clearing. ARGV: id, process id, record, room
 * (0: it takes no sessions), silence after which a server is dead ms, 1 to look for dead servers,
 * how long clearing up after one may take ms. Returns the process that announced itself under this
 * id before ('' for none, or when this one was taken for dead), the number of live servers, and the
 * ids of dead ones for the caller to clear up after.
 */
export const ANNOUNCE_NODE = script(
  'announce-node',
  `
${NOW_MS}
local id, dead = ARGV[1], now - tonumber(ARGV[5])
local before = redis.call('HGET', KEYS[3], 'run:' .. id) or ''
redis.call('ZADD', KEYS[1], now, id)
redis.call('HSET', KEYS[3], id, ARGV[3], 'run:' .. id, ARGV[2])
if redis.call('ZREM', KEYS[4], id) == 1 then before = '' end
if tonumber(ARGV[4]) > 0 then
  redis.call('ZADD', KEYS[2], ARGV[4], id)
else
  redis.call('ZREM', KEYS[2], id)
end
-- A later heartbeat than now was written before the clock was set back.
for _, ahead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. (now + 1000), '+inf')) do
  redis.call('ZADD', KEYS[1], now, ahead)
end
local out = {before, redis.call('ZCOUNT', KEYS[1], '(' .. dead, '+inf')}
if ARGV[6] ~= '1' then return out end
for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', dead, 'LIMIT', 0, 16)) do
  redis.call('ZREM', KEYS[2], other)
  if tonumber(redis.call('ZSCORE', KEYS[4], other) or 0) <= now then
    redis.call('ZADD', KEYS[4], now + tonumber(ARGV[7]), other)
    out[#out + 1] = other
  end
end
return out`,
);

/**
 * Removes a server: it stopped, or everything it left behind was freed. KEYS: beats, rooms, records,
 * clearing. ARGV: id, silence after which a server is dead ms (0: whatever its last heartbeat).
 * Returns 0 when it lives again.
 */
export const FORGET_NODE = script(
  'forget-node',
  `
${NOW_MS}
redis.call('ZREM', KEYS[4], ARGV[1])
local beat = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ARGV[2] ~= '0' and beat > now - tonumber(ARGV[2]) then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1], 'run:' .. ARGV[1])
return 1`,
);

/**
 * Lists live servers, by id. KEYS: beats, records. ARGV: silence after which a server is dead ms.
 * Returns record, time since its heartbeat ms, record, ...
 */
export const LIST_NODES = script(
  'list-nodes',
  `
${NOW_MS}
local out = {}
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. (now - tonumber(ARGV[1])), '+inf', 'WITHSCORES')
for i = 1, #found, 2 do
  local record = redis.call('HGET', KEYS[2], found[i])
  if record then
    out[#out + 1] = record
    out[#out + 1] = math.max(0, now - tonumber(found[i + 1]))
  end
end
return out`,
);

/**
 * The live servers with the most room, first the one with the most. KEYS: rooms, beats, records.
 * ARGV: most servers, silence after which a server is dead ms. Returns their records.
 */
export const ROOMIEST_NODES = script(
  'roomiest-nodes',
  `
${NOW_MS}
local out = {}
for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(0', 'LIMIT', 0, ARGV[1])) do
  local beat = tonumber(redis.call('ZSCORE', KEYS[2], id) or 0)
  local record = redis.call('HGET', KEYS[3], id)
  if record and beat > now - tonumber(ARGV[2]) then out[#out + 1] = record end
end
return out`,
);

/** Replaces a hash. KEYS: hash. ARGV: field, value, ... */
export const REPLACE_HASH = script(
  'replace-hash',
  `
redis.call('DEL', KEYS[1])
for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return #ARGV / 2`,
);

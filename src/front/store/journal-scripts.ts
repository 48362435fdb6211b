// The Lua scripts of the journal of live sessions. Heartbeats have the time of Redis and show whether
// a session is lost. Each record also has the duration of the session by the monotonic clock of its
// server. That duration is accounted when the server dies.
import { NOW_MS, script } from './scripts.ts';

/** Begins a journal record. KEYS: heartbeats, records. ARGV: id, record, duration so far ms. */
export const JOURNAL_BEGIN = script(
  'journal-begin',
  `
${NOW_MS}
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2], 'ms:' .. ARGV[1], ARGV[3])
return 1`,
);

/**
 * Updates heartbeats of sessions that are in the journal. KEYS: heartbeats, records. ARGV: id,
 * duration so far ms, id, ... of at most 1000 sessions (`unpack` has a limit).
 */
export const JOURNAL_HEARTBEAT = script(
  'journal-heartbeat',
  `
${NOW_MS}
local ids, beats, durations = {}, {}, {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
for i, score in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(ids))) do
  if score then
    beats[#beats + 1] = now
    beats[#beats + 1] = ids[i]
    durations[#durations + 1] = 'ms:' .. ids[i]
    durations[#durations + 1] = ARGV[2 * i]
  end
end
if #beats > 0 then
  redis.call('ZADD', KEYS[1], unpack(beats))
  redis.call('HSET', KEYS[2], unpack(durations))
end
return #ids`,
);

/** Ends a journal record. KEYS: heartbeats, records. ARGV: id. */
export const JOURNAL_END = script(
  'journal-end',
  `
redis.call('ZREM', KEYS[1], ARGV[1])
return redis.call('HDEL', KEYS[2], ARGV[1], 'ms:' .. ARGV[1])`,
);

/**
 * Finds lost sessions. KEYS: heartbeats, records. ARGV: silence after which a session is lost, ms;
 * 0: all sessions. Returns id, last heartbeat ms, duration ms ('' for records of an earlier
 * version), record, id, ...
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
    out[#out + 1] = lost[i]; out[#out + 1] = lost[i + 1]
    out[#out + 1] = found[2] or ''; out[#out + 1] = found[1]
  else
    redis.call('ZREM', KEYS[1], lost[i])
  end
end
return out`,
);

/**
 * Owns: what happens inside Redis in one step. Every key of an upstream bears its hash tag, so each script
 * works on one node of a cluster; none of them searches (no KEYS, SCAN or FLUSH).
 *
 * A generation is never the same twice: where it is missing (a new, an emptied, or an evicting Redis) it begins
 * at a random number that the caller brings. So nothing kept under an old one can be taken for new. The count
 * of drops likewise.
 */

/** Begins every script: the generation of KEYS[1], made from `start` where it is missing; nil where it cannot be. */
const GENERATION = `
local function generation(start)
  local g = redis.pcall('get', KEYS[1])
  if type(g) == 'table' or not g then
    local made = redis.pcall('set', KEYS[1], start)
    if type(made) == 'table' and made.err then return nil end
    g = start
  end
  return g
end
local function drops(start)
  local d = redis.pcall('get', KEYS[2])
  d = type(d) == 'string' and tonumber(d)
  if d then return d end
  if start then redis.pcall('set', KEYS[2], start) end
  return tonumber(start) or 0
end
local function millis()
  local t = redis.call('time')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
`;

/**
 * KEYS: generation, drops. ARGV: a start, the prefix of entries, then keys of entries.
 * Returns: generation or false, drops, milliseconds of Redis's clock, then for each entry its value (or false) and
 * what is left of its time in milliseconds.
 */
export const LOOK = `${GENERATION}
local g = generation(ARGV[1])
if not g then return {false} end
local out = {g, drops(ARGV[1]), millis()}
for i = 3, #ARGV do
  local key = ARGV[2] .. g .. ':' .. ARGV[i]
  local value = redis.pcall('get', key)
  if type(value) == 'table' then value = false end
  out[#out + 1] = value
  out[#out + 1] = value and redis.call('pttl', key) or 0
end
return out
`;

/** The same, and an error where Redis takes no writes: what cannot be flushed is not to be trusted. */
export const REFRESH = `redis.call('persist', KEYS[1])
${LOOK}`;

/**
 * KEYS: generation, drops, log of drops. ARGV: expected generation, expected drops, the milliseconds that Redis's
 * clock should show, lifetime in milliseconds, prefix of entries, key, value, prefix of indexes, names of indexes
 * apart by blanks, digests of resources apart by blanks, length of the log.
 * A command that was held up on its way is shortened by as much: a lifetime is not stretched by a slow tier.
 * Returns 1 stored, 0 superseded by a drop, -1 too late, or the generation that superseded it.
 */
export const WRITE = `${GENERATION}
local g = redis.pcall('get', KEYS[1])
if g ~= ARGV[1] then return type(g) == 'string' and g or 'gone' end
local count = drops()
local since = count - tonumber(ARGV[2])
if since ~= 0 and ARGV[10] ~= '' then
  if since < 0 or since > tonumber(ARGV[11]) then return 0 end
  local shown = {}
  for uri in string.gmatch(ARGV[10], '%S+') do shown[uri] = true end
  local log = redis.pcall('lrange', KEYS[3], 0, since - 1)
  if log.err or #log < since then return 0 end
  for i, line in ipairs(log) do
    local number, uri = string.match(line, '^(%d+) (%S+)$')
    if tonumber(number) ~= count + 1 - i or shown[uri] then return 0 end
  end
end
local late = millis() - tonumber(ARGV[3])
local px = tonumber(ARGV[4])
if late > 0 then px = px - late end
if px < 1 then return -1 end
local key = ARGV[5] .. g .. ':' .. ARGV[6]
redis.call('set', key, ARGV[7], 'PX', px)
for name in string.gmatch(ARGV[9], '%S+') do
  local index = ARGV[8] .. g .. ':' .. name
  local added = redis.pcall('sadd', index, ARGV[6])
  if type(added) == 'table' and added.err then
    redis.call('del', index)
    redis.call('sadd', index, ARGV[6])
  end
  if redis.call('pttl', index) < px then redis.call('pexpire', index, px) end
end
return 1
`;

/**
 * KEYS: generation. ARGV: a start, channel, message before and after the generation.
 * Where the number cannot be written (a full Redis), it is taken away, which is a flush as well.
 * Returns the new generation, or false where it is gone.
 */
export const FLUSH = `
local moved = redis.pcall('incr', KEYS[1])
if type(moved) == 'table' and moved.err then
  redis.call('del', KEYS[1])
  redis.pcall('set', KEYS[1], ARGV[1])
end
local g = redis.call('get', KEYS[1])
redis.call('publish', ARGV[2], ARGV[3] .. (g or 'gone') .. ARGV[4])
return g
`;

/**
 * KEYS: generation, drops, log of drops. ARGV: prefix of indexes, prefix of entries, name of the index or '',
 * digest of the resource or '', length of the log, channel, message, a start, then keys of entries to drop by name.
 * Returns how many entries went.
 */
export const DROP = `
local g = redis.call('get', KEYS[1])
local dropped = 0
if ARGV[4] ~= '' then
  local counted = redis.call('exists', KEYS[2]) == 1 and redis.pcall('incr', KEYS[2])
  if type(counted) ~= 'number' then redis.call('set', KEYS[2], ARGV[8]) end
  local line = redis.call('get', KEYS[2]) .. ' ' .. ARGV[4]
  local logged = redis.pcall('lpush', KEYS[3], line)
  if type(logged) == 'table' and logged.err then
    redis.call('del', KEYS[3])
    redis.call('lpush', KEYS[3], line)
  end
  redis.call('ltrim', KEYS[3], 0, tonumber(ARGV[5]) - 1)
end
if g then
  if ARGV[3] ~= '' then
    local index = ARGV[1] .. g .. ':' .. ARGV[3]
    for _, key in ipairs(redis.call('smembers', index)) do
      dropped = dropped + redis.call('del', ARGV[2] .. g .. ':' .. key)
    end
    redis.call('del', index)
  end
  for i = 9, #ARGV do dropped = dropped + redis.call('del', ARGV[2] .. g .. ':' .. ARGV[i]) end
end
redis.call('publish', ARGV[6], ARGV[7])
return dropped
`;

/** KEYS: a lease. ARGV: token, milliseconds. Returns the token that holds it now. */
export const HOLD = `
local holder = redis.call('get', KEYS[1])
if not holder or holder == ARGV[1] then
  redis.call('set', KEYS[1], ARGV[1], 'PX', tonumber(ARGV[2]))
  return ARGV[1]
end
return holder
`;

/** KEYS: a lease. ARGV: token, milliseconds, the token that may be replaced. Returns 1 where it is held now. */
export const REPLACE = `
local holder = redis.call('get', KEYS[1])
if holder and holder ~= ARGV[3] and holder ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[1], 'PX', tonumber(ARGV[2]))
return 1
`;

/** KEYS: a lease. ARGV: token, channel, message. Gives the lease up if it is held by the token, and says so. */
export const RELEASE = `
if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end
redis.call('publish', ARGV[2], ARGV[3])
return 1
`;

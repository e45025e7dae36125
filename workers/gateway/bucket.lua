-- The rate bucket of all gateways: what may be asked in a minute, how many calls may run at once, and how long
-- nobody asks. One script, so that each question is one step whoever asks. Time is Redis' own.
--
-- KEYS[1] the bucket's numbers, KEYS[2] calls under way by the time at which their holder is taken for dead.
-- ARGV[1] what to do, ARGV[2] its parameters as JSON. The answer is JSON.
local verb, p = ARGV[1], cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local b = {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do b[raw[i]] = tonumber(raw[i + 1]) end
if not b.at then
  -- New, or lost with Redis: what the last minute used is not known, so there is little in it and one call at once.
  b = {at = now, requests = math.max(1, p.requests / 10), input = p.input / 10, output = p.output / 10,
       mean_output = 1000, limit = 1, ceiling = 0, good = 0, wanted = 40,
       failures = 0, failing_since = 0, pause_until = 0, rest_until = 0, cut_at = 0}
end
for _, name in ipairs({'requests', 'input', 'output'}) do
  b[name] = math.min(p[name], b[name] + p[name] / 60 * (now - b.at))
end
b.at = now
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local active = redis.call('ZCARD', KEYS[2])
if b.rest_until > 0 and now >= b.rest_until then
  b.rest_until, b.failing_since, b.failures, b.limit = 0, 0, 0, 1
end

local function late(name, needed)  -- seconds until there is enough of something
  return math.max(0, (needed - b[name]) * 60 / p[name])
end

local function take()
  if b.rest_until > now then return {why = 'rest', wait = b.rest_until - now} end
  if b.pause_until > now then return {why = 'pause', wait = b.pause_until - now} end
  if active >= math.min(p.at_once, math.floor(b.limit + 0.000001)) then return {why = 'calls', wait = 1} end
  -- One that is larger than a whole minute's goes when there is a minute's.
  local input = math.min(p.asked_input, p.input)
  local output = math.min(p.most_output, b.mean_output, p.output)
  local wait, why = late('requests', 1), 'requests'
  if late('input', input) > wait then wait, why = late('input', input), 'input' end
  if late('output', output) > wait then wait, why = late('output', output), 'output' end
  if wait > 0 then return {why = why, wait = wait} end
  b.requests, b.input, b.output = b.requests - 1, b.input - p.asked_input, b.output - output
  redis.call('ZADD', KEYS[2], now + p.lease_s, p.id)
  return {why = 'go', wait = 0, at = now, input = p.asked_input, output = output}
end

local function grow()
  if active < math.floor(b.limit + 0.000001) then return end  -- more was allowed already
  if b.ceiling == 0 then
    b.limit = b.limit + 1 / b.limit  -- nobody has said no yet: one more for each round of calls
  elseif b.limit < b.ceiling then
    b.limit = math.min(b.ceiling, b.limit + 1)  -- back to what has worked
  else
    b.good = b.good + 1  -- beyond what has worked only now and then: each try that fails is a refused call
    if b.good >= b.wanted then
      b.good, b.wanted, b.ceiling = 0, math.max(5, b.wanted / 2), b.ceiling + 1
      b.limit = b.ceiling
    end
  end
  b.limit = math.min(p.at_once, b.limit)
end

local function shrink()
  -- Calls that began before the last cut say nothing about what is allowed since.
  if p.at < b.cut_at then return end
  b.cut_at, b.failures = now, b.failures + 1
  if p.strain == 'limited' then
    b.ceiling = math.max(1, math.floor(b.limit + 0.000001) - 1)
    b.good, b.wanted = 0, 40
  end
  b.limit = math.max(1, b.limit / 2)
  local wait = math.min(p.backoff_most_s, p.backoff_s * 2 ^ math.min(30, b.failures - 1))
  if p.retry_after_s and p.retry_after_s ~= cjson.null then wait = math.max(0, p.retry_after_s) end
  b.pause_until = math.max(b.pause_until, now + wait)
end

local function done()
  redis.call('ZREM', KEYS[2], p.id)
  b.input = math.min(p.input, b.input + p.taken_input - p.used_input)
  b.output = math.min(p.output, b.output + p.taken_output - p.used_output)
  if p.strain == 'fine' then
    b.failures, b.failing_since = 0, 0
    if p.used_output > 0 then b.mean_output = 0.8 * b.mean_output + 0.2 * p.used_output end
    grow()
  elseif p.strain == 'none' then
    if p.unasked then b.requests = math.min(p.requests, b.requests + 1) end
  else
    if b.failing_since == 0 then b.failing_since = now end
    if p.strain ~= 'broken' then shrink() end
  end
end

local answer = {}
if verb == 'take' then
  answer = take()
elseif verb == 'done' then
  done()
elseif verb == 'renew' then
  for _, id in ipairs(p.ids) do redis.call('ZADD', KEYS[2], now + p.lease_s, id) end
elseif verb == 'rest' then
  b.rest_until, b.limit = math.max(b.rest_until, now + p.rest_s), 1
end
local flat = {}
for name, value in pairs(b) do
  flat[#flat + 1] = name
  flat[#flat + 1] = string.format('%.6f', value)
end
redis.call('HSET', KEYS[1], unpack(flat))
redis.call('EXPIRE', KEYS[1], 86400)
redis.call('EXPIRE', KEYS[2], 86400)
answer.active = redis.call('ZCARD', KEYS[2])
answer.limit = math.min(p.at_once, math.floor(b.limit + 0.000001))
answer.failing_s = b.failing_since > 0 and now - b.failing_since or 0
answer.pause_s = math.max(0, b.pause_until - now)
answer.rest_s = math.max(0, b.rest_until - now)
return cjson.encode(answer)

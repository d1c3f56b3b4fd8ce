-- Writes blocks of a trace.
-- KEYS: cluster, hash of counts, then a stream for each entry.
-- ARGV: epoch, incarnation, then four arguments for each entry: kind (b: a block, f: a place in a
-- file, c: counts only, d: delete), "<epoch>-<n>|<job>", counts, payload.
-- An entry whose id is in the stream already is skipped: an earlier call wrote it and its answer
-- was lost.
local c = redis.call('HMGET', KEYS[1], 'epoch', 'incarnation')
if c[1] and tonumber(c[1]) > tonumber(ARGV[1]) and c[2] ~= ARGV[2] then return 'refused' end
for i = 3, #KEYS do
  local a = 3 + (i - 3) * 4
  local what, id, job = ARGV[a], string.match(ARGV[a + 1], '([^|]*)|(.*)')
  if what == 'd' then
    redis.call('UNLINK', KEYS[i])
    redis.call('HDEL', KEYS[2], job)
  else
    if what ~= 'c' then
      local r = redis.pcall('XADD', KEYS[i], id, what, ARGV[a + 3])
      if type(r) == 'table' and r.err and not string.find(r.err, 'equal or smaller', 1, true) then
        return r
      end
    end
    redis.call('HSET', KEYS[2], job, ARGV[a + 2])
  end
end
return 'ok'

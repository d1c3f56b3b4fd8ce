-- Writes entries of the traces of jobs.
-- KEYS: cluster, hash of counts, then a stream for each entry.
-- ARGV: epoch and incarnation of the scheduler, then four arguments for each entry: kind (b: a
-- block, f: a block's place in a file, s: a sheet, g: a sheet's place in a file, c: counts only, d:
-- delete the trace), "<id>|<job>", counts, payload. The id is "<epoch>-<n>", where n is the number of the entry.
-- An entry whose id is in the stream already is not added again: an earlier call wrote the entry,
-- but the answer to that call was lost.
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

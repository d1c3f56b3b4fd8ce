-- Appends records to the journal. Records that Redis has already are skipped, so a repeated call
-- writes nothing twice.
-- KEYS: cluster, journal, staging.
-- ARGV: cluster id, epoch, sequence of the first record, first and last sequence of the snapshot
-- that these records belong to (0, 0: no snapshot), incarnation of the writer, format, then the
-- records.
-- Answers {"ok", last} | {"behind", last} | {"refused", epoch}. "behind": nothing is appended,
-- because Redis lacks records before the first one. "refused": another scheduler has taken over.
-- A journal of another incarnation with a lower epoch is an older copy, or was continued from an
-- older copy. Its sequence numbers mean other records, so nothing is appended to it.
-- A snapshot that replaces the journal grows in the staging stream. With its last record, the
-- staging stream is renamed to the journal. So at any time exactly one complete journal exists.
local function on(key, reply)
  if type(reply) == 'table' and reply.err then
    error({err = reply.err .. ' (key ' .. key .. ')'})
  end
  return reply
end
local cluster = KEYS[1]
local c = on(cluster, redis.pcall('HMGET', cluster, 'id', 'epoch', 'sequence', 'incarnation'))
local first, begin, whole = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local format = ARGV[7]
if c[1] and c[1] ~= ARGV[1] then return {'refused', tonumber(c[2] or 0)} end
local epoch, mine = tonumber(c[2] or 0), tonumber(ARGV[2])
local foreign = c[4] and c[4] ~= ARGV[6]
if epoch > mine or (foreign and epoch == mine) then return {'refused', epoch} end
local key, last = KEYS[2], tonumber(c[3] or 0)
local staged = whole > 0 and (foreign or last < whole)
if foreign and not staged then return {'behind', 0} end
if staged then
  key, last = KEYS[3], begin - 1
  if first == begin then on(key, redis.pcall('DEL', key)) end
  local e = on(key, redis.pcall('XREVRANGE', key, '+', '-', 'COUNT', 1))
  if e[1] then last = tonumber(string.match(e[1][1], '^%d+')) end
end
if last < first - 1 then return {'behind', last} end
local skip = last - (first - 1)
local count = #ARGV - 7
if count > skip then
  last = first + count - 1
  local entry = {'XADD', key, string.format('%d-0', last)}
  for i = skip + 1, count do
    entry[#entry + 1] = 'r'
    entry[#entry + 1] = ARGV[7 + i]
  end
  on(key, redis.pcall(unpack(entry)))
end
if staged then
  on(cluster, redis.pcall('HSET', cluster, 'id', ARGV[1], 'epoch', ARGV[2], 'format', format))
  if last < whole then return {'ok', last} end
  on(key, redis.pcall('RENAME', key, KEYS[2]))
  on(cluster, redis.pcall('HSET', cluster, 'base', ARGV[4], 'incarnation', ARGV[6]))
elseif epoch < mine then
  on(cluster, redis.pcall('HSET', cluster, 'id', ARGV[1], 'epoch', ARGV[2], 'format', format,
    'incarnation', ARGV[6]))
end
on(cluster, redis.pcall('HSET', cluster, 'sequence', string.format('%d', last)))
return {'ok', last}

-- Deletes a queue. Its items are kept under another key until queue_released.lua has looked at each
-- of them.
if not max then return {'none'} end
if n0 > 0 then
  local aside = KEYS[4] .. ':' .. t[1] .. string.format('%06d', t[2])
    .. ':' .. name
  call('RENAME', it, aside)
  call('RPUSH', KEYS[4] .. ':aside', aside)
end
call('UNLINK', h, w, d, l, r, p, x)
call('ZREM', KEYS[2], name)
mark()
return {'ok'}

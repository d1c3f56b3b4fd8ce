-- Closes a queue: it takes no further items.
if not max then return {'none'} end
call('HSET', h, 'closed', '1')
mark()
return {'ok', facts(), {}}

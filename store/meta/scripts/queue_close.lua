-- Closes a queue: no further item can be put into it.
if not max then return {'none'} end
call('HSET', h, 'closed', '1')
mark()
return {'ok', facts(), {}}

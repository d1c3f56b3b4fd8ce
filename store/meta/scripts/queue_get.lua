-- Returns the counts of a queue and its newest dead items.
-- ARGV[1] to ARGV[4]: see queue.lua. Then: limit of the dead items.
if not max then return {'none'} end
expire()
return done({'ok', facts(), call('LRANGE', x, 0, ARGV[5] - 1)})

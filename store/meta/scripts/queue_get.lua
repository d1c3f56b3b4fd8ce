-- Returns the counts of a queue and its newest dead items. ARGV: limit of the dead items.
if not max then return {'none'} end
expire()
return done({'ok', facts(), call('LRANGE', x, 0, ARGV[5] - 1)})

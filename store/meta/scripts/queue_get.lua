-- Returns the counts of a queue and its newest dead items. ARGV: dead items shown.
if not max then return {'none'} end
expire()
return done({'ok', facts(), call('LRANGE', x, 0, ARGV[5] - 1)})

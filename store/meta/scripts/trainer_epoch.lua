-- Takes the next epoch of the trainer, at least ARGV[1]. KEYS: epoch.
local e = redis.call('INCR', KEYS[1])
local least = tonumber(ARGV[1])
if e >= least then return e end
redis.call('SET', KEYS[1], ARGV[1])
return least

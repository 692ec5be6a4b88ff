-- Drops a recipient's ledger, because it is wrong or may be. The next booking
-- finds it cold, and what Postgres then says fills it again.
--
-- KEYS[1]  bookings, KEYS[2] filler: see reserve.lua

return redis.call('DEL', KEYS[1], KEYS[2])

-- adopt.lua indexes the bare jobs among some ids. See adoption.lua.
--
-- KEYS  1 root
-- ARGV  1 to 4 as in adoption.lua, then ids: their fuses were heard to expire
--       (also one that the index has at a later time is then due now), or their
--       class keys were seen
-- Answer  adopted, as in adoption.lua.
-- Cost  see adoption.lua. Replaying it changes nothing.

adopt_all(ARGV, 5, #ARGV)
return adopted

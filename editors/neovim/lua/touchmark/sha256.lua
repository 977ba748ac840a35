--- SHA-256 (FIPS 180-4) of bytes that come in pieces. `vim.fn.sha256` takes a
--- whole text without NUL bytes; files have them, and are read in pieces.

local bit = require('bit')
local band, bnot, bxor = bit.band, bit.bnot, bit.bxor
local ror, shr, tobit = bit.ror, bit.rshift, bit.tobit
local byte = string.byte

local M = {}

--- The first 32 bits of the fractional parts of the roots of the first
--- primes: cube roots for the rounds, square roots to begin with.
local function fractions(count, root)
  local list, candidate = {}, 2
  while #list < count do
    local prime = true
    for divisor = 2, math.floor(math.sqrt(candidate)) do
      if candidate % divisor == 0 then
        prime = false
        break
      end
    end
    if prime then
      local value = candidate ^ root
      list[#list + 1] = tobit(math.floor((value - math.floor(value)) * 2 ^ 32))
    end
    candidate = candidate + 1
  end
  return list
end

local ROUNDS = fractions(64, 1 / 3)
local BEGINNING = fractions(8, 1 / 2)

--- One block of 64 bytes of `bytes`, from `at`, into the state `h`.
local function block(h, w, bytes, at)
  for i = 1, 16 do
    local p = at + (i - 1) * 4
    local b1, b2, b3, b4 = byte(bytes, p, p + 3)
    w[i] = tobit(b1 * 16777216 + b2 * 65536 + b3 * 256 + b4)
  end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0 = bxor(ror(x, 7), ror(x, 18), shr(x, 3))
    local s1 = bxor(ror(y, 17), ror(y, 19), shr(y, 10))
    w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
  end
  local a, b, c, d = h[1], h[2], h[3], h[4]
  local e, f, g, k = h[5], h[6], h[7], h[8]
  for i = 1, 64 do
    local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
    local choice = bxor(band(e, f), band(bnot(e), g))
    local t1 = k + s1 + choice + ROUNDS[i] + w[i]
    local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
    local majority = bxor(band(a, b), band(a, c), band(b, c))
    k, g, f = g, f, e
    e = tobit(d + t1)
    d, c, b = c, b, a
    a = tobit(t1 + s0 + majority)
  end
  h[1], h[2] = tobit(h[1] + a), tobit(h[2] + b)
  h[3], h[4] = tobit(h[3] + c), tobit(h[4] + d)
  h[5], h[6] = tobit(h[5] + e), tobit(h[6] + f)
  h[7], h[8] = tobit(h[7] + g), tobit(h[8] + k)
end

--- A hash under way: `update(bytes)`, then once `hex()`.
function M.new()
  local h, w = {}, {}
  for i = 1, 8 do
    h[i] = BEGINNING[i]
  end
  local rest, length = '', 0
  local hash = {}

  function hash.update(bytes)
    length = length + #bytes
    bytes = rest .. bytes
    local whole = #bytes - #bytes % 64
    for at = 1, whole, 64 do
      block(h, w, bytes, at)
    end
    rest = bytes:sub(whole + 1)
  end

  function hash.hex()
    local bits = length * 8
    local high = math.floor(bits / 2 ^ 32)
    local tail = rest .. '\128' .. ('\0'):rep((55 - length) % 64)
    for _, word in ipairs({ high, bits % 2 ^ 32 }) do
      for shift = 24, 0, -8 do
        tail = tail .. string.char(math.floor(word / 2 ^ shift) % 256)
      end
    end
    for at = 1, #tail, 64 do
      block(h, w, tail, at)
    end
    local words = {}
    for i = 1, 8 do
      words[i] = bit.tohex(h[i])
    end
    return table.concat(words)
  end

  return hash
end

--- Of a whole text.
---@param bytes string
---@return string 64 lower-case hex digits
function M.of(bytes)
  local hash = M.new()
  hash.update(bytes)
  return hash.hex()
end

return M

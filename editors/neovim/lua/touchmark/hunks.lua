--- Which lines differ between two texts, and where lines have gone.

local M = {}

--- Where there is no diff: one hunk, from the first line that differs to the
--- last one.
local function plain(before, after)
  local a = vim.split(before, '\n', { plain = true })
  local b = vim.split(after, '\n', { plain = true })
  local first = 1
  while first <= #a and first <= #b and a[first] == b[first] do
    first = first + 1
  end
  local last_a, last_b = #a, #b
  while last_a >= first and last_b >= first and a[last_a] == b[last_b] do
    last_a, last_b = last_a - 1, last_b - 1
  end
  local count_a, count_b = last_a - first + 1, last_b - first + 1
  if count_a == 0 and count_b == 0 then
    return {}
  end
  return {
    { count_a > 0 and first or first - 1, count_a, count_b > 0 and first or first - 1, count_b },
  }
end
M.plain = plain

--- Hunks `{from, count, to, count}`, lines from 1; with a count of 0, `from` or
--- `to` is the line before.
---@param before string lines, each with its end
---@param after string
function M.between(before, after)
  if before == after then
    return {}
  end
  local diff = vim.diff or (vim.text and vim.text.diff)
  if diff then
    return diff(before, after, { result_type = 'indices' })
  end
  return plain(before, after)
end

--- Where marked lines are after the hunks: those that were replaced are gone.
---@param lines table<integer, string> kind by line
function M.carry(lines, hunks)
  local carried = {}
  for line, kind in pairs(lines) do
    local at = line
    for _, hunk in ipairs(hunks) do
      local from, count, _, new = unpack(hunk)
      if count == 0 then
        at = line > from and at + new or at
      elseif line >= from + count then
        at = at + new - count
      elseif line >= from then
        at = nil
        break
      end
    end
    if at then
      carried[at] = kind
    end
  end
  return carried
end

--- The lines that the hunks brought, and those after which some went.
---@return table<integer, string> `changed` or `removed`, by line
function M.lines(hunks)
  local lines = {}
  for _, hunk in ipairs(hunks) do
    local _, _, to, count = unpack(hunk)
    if count == 0 then
      lines[math.max(to, 1)] = 'removed'
    end
    for line = to, to + count - 1 do
      lines[line] = 'changed'
    end
  end
  return lines
end

return M

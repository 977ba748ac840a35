--- Changes and commands, in the words that the user sees.

local names = require('touchmark.names')
local whole = require('touchmark.whole')

local M = {}

--- The number of lines of a text.
function M.count(text)
  local _, ends = text:gsub('\n', '')
  return ends + (text:sub(-1) ~= '\n' and text ~= '' and 1 or 0)
end

--- `1 change`, `4 changes`.
function M.plural(number, word)
  return ('%d %s%s'):format(number, word, number == 1 and '' or 's')
end

--- What a change did: `line 4 changed`, `mode 644 → 755`.
function M.what(hunk)
  if not hunk.lines then
    return whole.what(hunk)
  end
  local from, to = hunk.lines.start, hunk.lines['end']
  if hunk.deleted then
    return 'deleted the file'
  elseif hunk.created then
    return 'new file, ' .. M.plural(M.count(hunk.after), 'line')
  elseif hunk.after == '' then
    return ('%s removed after line %d'):format(M.plural(M.count(hunk.before), 'line'), from)
  end
  local lines = from == to and ('line %d'):format(from) or ('lines %d-%d'):format(from, to)
  return lines .. (hunk.before == '' and ' added' or ' changed')
end

--- The authors of changes, each once. What appeared while a command ran may be
--- the user's.
function M.authors(changes)
  local found, likely = {}, false
  for _, hunk in ipairs(changes) do
    likely = likely or hunk.likely
    for _, author in ipairs(hunk.authors) do
      local name = names.author(author)
      if not vim.tbl_contains(found, name) then
        found[#found + 1] = name
      end
    end
  end
  return table.concat(found, ', ') .. (likely and ' or you' or '')
end

--- How long something took: `120 ms`, `42 s`, `3 min 2 s`, `2 h 5 min`.
---@param milliseconds integer
function M.duration(milliseconds)
  local seconds = math.floor(milliseconds / 1000)
  if seconds < 1 then
    return ('%d ms'):format(milliseconds)
  elseif seconds < 60 then
    return ('%d s'):format(seconds)
  elseif seconds < 3600 then
    return ('%d min %d s'):format(math.floor(seconds / 60), seconds % 60)
  end
  return ('%d h %d min'):format(math.floor(seconds / 3600), math.floor(seconds / 60) % 60)
end

--- A command as people know it: its line, its name, and how long it ran.
---@param name string such as `c5`
---@param row table? the command, from `command/list`
function M.command(name, row)
  local label = row and row.label and names.show(row.label:match('^[^\n]*'), 60)
  local took = row and row.endedAt and ', ' .. M.duration(row.endedAt - row.begunAt) or ''
  return ('%s (%s%s)'):format(label and '`' .. label .. '`' or 'a command', name, took)
end

return M

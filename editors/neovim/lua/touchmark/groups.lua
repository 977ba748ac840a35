--- The queue in groups: by file, directory, command or session.

local words = require('touchmark.words')

local M = {}

M.BY = { 'file', 'directory', 'command', 'session' }

--- The number of files from which on the changes of one command are one entry
--- (REV-1).
local MANY = 8

--- The number of files that changes are in.
function M.files(changes)
  local seen = {}
  for _, change in ipairs(changes) do
    seen[change.path] = true
  end
  return vim.tbl_count(seen)
end

--- Gathers changes that have the same place: `place(change)` returns `by` and
--- `name` of a group. Groups come in the order of their first changes.
local function gather(changes, place)
  local groups, found = {}, {}
  for _, change in ipairs(changes) do
    local by, name = place(change)
    local key = by .. '\n' .. name
    if not found[key] then
      found[key] = { by = by, name = name, key = key, all = {}, inner = {} }
      groups[#groups + 1] = found[key]
    end
    table.insert(found[key].all, change)
  end
  for _, group in ipairs(groups) do
    group.own = group.all
    group.is_many = group.by == 'command' and M.files(group.all) >= MANY
  end
  return groups
end

--- The commands that changed many of the files.
local function many(changes)
  local made = vim.tbl_filter(function(change)
    return change.command ~= nil
  end, changes)
  local found = {}
  for _, group in ipairs(gather(made, function(change)
    return 'command', change.command
  end)) do
    found[group.name] = group.is_many or nil
  end
  return found
end

local PLACES = {
  file = function(change)
    return 'file', change.path
  end,
  directory = function(change)
    return 'directory', change.path:match('^.*/') or './'
  end,
  command = function(change)
    return change.command and 'command' or 'edits', change.command or ''
  end,
  session = function(change)
    return 'session', words.authors({ { authors = change.authors } })
  end,
}

--- Groups changes. A group is `{by, name, key, all, own, inner, is_many}`:
--- `inner` are the commands in it that changed many files, `own` the other
--- changes. `edits` are the changes that no single command made.
---@param changes table[]
---@param by string one of `BY`
function M.of(changes, by)
  local place = PLACES[by]
  if by == 'command' then
    return gather(changes, place)
  elseif by == 'file' then
    -- The files of such a command are one entry in the place of the first.
    local folded = many(changes)
    return gather(changes, function(change)
      if folded[change.command] then
        return 'command', change.command
      end
      return place(change)
    end)
  end
  local groups = gather(changes, place)
  for _, group in ipairs(groups) do
    local folded = many(group.all)
    local function is_folded(change)
      return folded[change.command] == true
    end
    group.inner = gather(vim.tbl_filter(is_folded, group.all), PLACES.command)
    group.own = vim.tbl_filter(function(change)
      return not is_folded(change)
    end, group.all)
    for _, inner in ipairs(group.inner) do
      inner.key = group.key .. '\n' .. inner.key
    end
  end
  return groups
end

return M

--- Changes that have no lines: of a mode, and of a symlink (REV-3).

local names = require('touchmark.names')

local M = {}

--- Characters of a symlink's target that are shown.
local MOST = 40

local function is_link(mode)
  return mode ~= nil and mode:sub(1, 2) == '12'
end

--- The permissions as `chmod` takes them: three digits, or four with special
--- bits.
local function permissions(mode)
  return (mode:sub(-4):gsub('^0', ''))
end

local function shown(target)
  return names.tail(target or '', MOST)
end

--- Whether the change is one of the mode, so that an undo leaves the content as
--- it is.
function M.is_mode(file)
  local before, now = file.modeBefore, file.mode
  return before ~= nil and now ~= nil and before ~= now and not is_link(before) and not is_link(now)
end

--- Whether the path now has a file that is no symlink, so that it can be
--- opened as itself.
function M.is_file(file)
  return file.mode ~= nil and not is_link(file.mode)
end

--- What a change did: `mode 644 → 755`, `symlink a → b`.
function M.what(file)
  local before, now = file.modeBefore, file.mode
  local function one(mode, target)
    return is_link(mode) and 'symlink → ' .. shown(target) or 'file'
  end
  if not before then
    return is_link(now) and one(now, file.target) or now and 'new file' or 'content changed'
  elseif not now then
    return 'removed ' .. one(before, file.targetBefore)
  elseif is_link(before) and is_link(now) then
    return ('symlink %s → %s'):format(shown(file.targetBefore), shown(file.target))
  elseif is_link(before) ~= is_link(now) then
    return ('%s replaced by %s'):format(one(before, file.targetBefore), one(now, file.target))
  end
  return before == now and 'content changed' or ('mode %s → %s'):format(permissions(before), permissions(now))
end

return M

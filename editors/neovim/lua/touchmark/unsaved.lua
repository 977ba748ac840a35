--- Which lines of the saved file a buffer's unsaved changes touch: what lies
--- between the lines that are still the same at its beginning and at its end.

local M = {}

--- The buffer, of `count` lines now, was changed: its lines from `first` up to
--- `last`, counted from 0, have become those up to `new_last`.
---@param edit table|nil what was known before; nil of a buffer without changes
function M.changed(edit, count, first, last, new_last)
  local before = count - (new_last - last)
  edit = edit or { above = before, below = before, saved = before }
  edit.above = math.min(edit.above, first)
  edit.below = math.min(edit.below, before - last)
  return edit
end

--- The lines from the first to the last, from 1; around the seam, where lines
--- were only added. Nil if nothing is known.
---@return {start: integer, end: integer}|nil
function M.lines(edit)
  if not edit then
    return nil
  end
  local first, last = edit.above + 1, edit.saved - edit.below
  if last < first then
    first, last = edit.above, edit.above + 1
  end
  first = math.max(1, math.min(first, edit.saved))
  return { start = first, ['end'] = math.max(first, math.min(last, edit.saved)) }
end

--- The line of the saved file that line `line` of a buffer with `count` lines
--- is; nil if it may have changed. Both from 1.
---@return integer|nil
function M.saved(edit, count, line)
  if not edit then
    return nil
  elseif line <= edit.above then
    return line
  end
  return line > count - edit.below and line - count + edit.saved or nil
end

--- The line of a buffer with `count` lines that has line `line` of the saved
--- file; nil if that may have changed. Both from 1.
---@return integer|nil
function M.shown(edit, count, line)
  if not edit then
    return nil
  elseif line <= edit.above then
    return line
  end
  return line > edit.saved - edit.below and line + count - edit.saved or nil
end

return M

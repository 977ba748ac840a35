--- The view of the queue: what its lines show, and which changes each is about.

local config = require('touchmark.config')
local groups = require('touchmark.groups')
local names = require('touchmark.names')
local notice = require('touchmark.notice')
local queue = require('touchmark.queue')
local view = require('touchmark.view')
local words = require('touchmark.words')

local M = {}

--- The name of the view.
M.NAME = 'review'

local namespace = vim.api.nvim_create_namespace('touchmark-review')
--- Lines of each side of a change that the view shows, and files of a group.
local MOST, FILES = 20, 6

local plural = words.plural

--- How the view is grouped; nil as the options say.
local by
--- The groups of the view that are shown one by one, by key.
local unfolded = {}
--- By line of the view: the entry that is shown there. An entry is `{owner,
--- key, changes, hunk, group, is_stop}`: one change, or the heading of a group.
local rows = {}

--- The entry that is shown in a line.
function M.entry(line)
  return rows[line]
end

--- The link whose queue is shown; nil of an empty view.
function M.owner()
  local _, row = next(rows)
  return row and row.owner
end

local function title_of(known, group)
  if group.by == 'command' then
    return words.command(group.name, known.commands[group.name])
  end
  return group.by == 'edits' and 'edits, or several commands' or names.tail(group.name, 60)
end

--- The lines of the view, and which entry each belongs to.
local function render(owner, known)
  local lines, own = {}, {}
  local function add(line, entry)
    lines[#lines + 1] = line
    own[#lines] = entry
  end
  local changes = queue.all(known)
  local width = math.max(40, vim.o.columns - 1)
  if #changes == 0 then
    add("No agent's change waits for your review.")
  else
    add(('%s%s by agents to review'):format(plural(#changes, 'change'), known.more and ' and more' or ''))
    add('K keep  U undo  L later  S fold  B group  <CR> open  ]c [c move  R again  q close')
  end
  local function head(text, about, entry)
    local room = width - vim.fn.strdisplaywidth(about) - 2
    add(('%s  %s'):format(names.tail(text, math.max(12, room)), about), entry)
  end
  local function change(hunk)
    local entry = { owner = owner, key = hunk.path .. '\n' .. hunk.id, changes = { hunk }, hunk = hunk, is_stop = true }
    add('')
    local who = words.authors({ hunk }) .. ', ' .. (queue.is_later(owner, hunk) and 'later' or names.ago(hunk.time))
    local did = words.what(hunk)
    local room = width - vim.fn.strdisplaywidth(did .. who) - 4
    add(('%s: %s  %s'):format(names.tail(queue.path_of(owner, hunk), math.max(12, room)), did, who), entry)
    for _, side in ipairs(hunk.lines and { { '-', hunk.before }, { '+', hunk.after } } or {}) do
      local all = side[2] == '' and {} or vim.split((side[2]:gsub('\n$', '')), '\n', { plain = true })
      for at, line in ipairs(all) do
        if at > MOST then
          add(('  and %s more'):format(plural(#all - MOST, 'line')), entry)
          break
        end
        add(side[1] .. names.show(line, 1000), entry)
      end
    end
  end
  local function show(group)
    local is_folded = group.is_many ~= (unfolded[group.key] == true)
    if group.by ~= 'file' then
      local entry = { owner = owner, key = group.key, changes = group.all, group = group, is_stop = is_folded }
      add('')
      local about = ('%s, %s'):format(plural(groups.files(group.all), 'file'), words.authors(group.all))
      head(title_of(known, group) .. ': ' .. plural(#group.all, 'change'), about, entry)
      for at = 1, is_folded and math.min(FILES, #group.all) or 0 do
        add('  ' .. names.tail(queue.path_of(owner, group.all[at]), width - 4), entry)
      end
      if is_folded and #group.all > FILES then
        add(('  and %d more'):format(#group.all - FILES), entry)
      end
    end
    if not is_folded then
      vim.tbl_map(show, group.inner)
      vim.tbl_map(change, group.own)
    end
  end
  vim.tbl_map(show, groups.of(changes, by or config.options.group))
  return lines, own
end

local function colour(buffer, lines)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local groups = { ['-'] = 'DiffDelete', ['+'] = 'DiffAdd' }
  for at, line in ipairs(lines) do
    local group = rows[at] and (groups[line:sub(1, 1)] or (line:find('^  ') and 'Comment') or 'Title')
    if group or at == 2 then
      vim.api.nvim_buf_set_extmark(buffer, namespace, at - 1, 0, { end_col = #line, hl_group = group or 'Comment' })
    end
  end
end

--- The first line of each entry of the view at which `]c` stops.
function M.stops()
  local found = {}
  for line = 1, vim.tbl_count(rows) > 0 and math.max(unpack(vim.tbl_keys(rows))) or 0 do
    if rows[line] and rows[line].is_stop and rows[line - 1] ~= rows[line] then
      found[#found + 1] = line
    end
  end
  return found
end

--- The first line of an entry, or nil.
local function line_of(key)
  local found
  for line, entry in pairs(rows) do
    if entry.key == key and (not found or line < found) then
      found = line
    end
  end
  return found
end

--- Shows the queue in the view, if that is open. The cursor stays at its entry:
--- a key must not be about another one. Where that has left the queue, it goes
--- to the change of the same number.
function M.draw(owner)
  local buffer = view.find(M.NAME)
  local known = queue.of(owner)
  if not buffer or not known then
    return
  end
  local window = vim.fn.bufwinid(buffer)
  local cursor = window ~= -1 and vim.api.nvim_win_get_cursor(window)[1] or 0
  local number = #vim.tbl_filter(function(line)
    return line <= cursor
  end, M.stops())
  local shown = rows[cursor] and rows[cursor].key
  local top = window ~= -1 and vim.fn.getwininfo(window)[1].topline
  local lines
  lines, rows = render(owner, known)
  view.show(buffer, lines)
  colour(buffer, lines)
  local now = M.stops()
  local at = shown and line_of(shown) or now[math.max(1, math.min(number, #now))]
  if window ~= -1 and at then
    vim.api.nvim_win_call(window, function()
      vim.fn.winrestview({ lnum = at, col = 0, topline = top })
    end)
  end
end

--- Groups the view by file, directory, command or session; without a word, by
--- the next of them.
---@param word string?
function M.group(word)
  local now = by or config.options.group
  for at, one in ipairs(groups.BY) do
    if not word and one == now then
      word = groups.BY[at % #groups.BY + 1]
      break
    end
  end
  if not vim.tbl_contains(groups.BY, word) then
    return notice.say('group by one of: ' .. table.concat(groups.BY, ', '))
  end
  by = word
  for _, owner in ipairs(queue.owners()) do
    M.draw(owner)
  end
  notice.say('grouped by ' .. by)
end

--- Shows the changes of the group at the cursor one by one, or as one entry
--- again.
function M.fold()
  local line = vim.api.nvim_win_get_cursor(0)[1]
  while line > 0 and not (rows[line] and rows[line].group) do
    line = line - 1
  end
  local entry = rows[line]
  if entry then
    unfolded[entry.group.key] = not unfolded[entry.group.key]
    M.draw(entry.owner)
  end
end

queue.listen(M.draw)

return M

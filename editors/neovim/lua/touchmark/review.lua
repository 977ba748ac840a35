--- Goes through agents' changes: keeps them, undoes them, puts them off.

local buffers = require('touchmark.buffers')
local groups = require('touchmark.groups')
local likely = require('touchmark.likely')
local link = require('touchmark.link')
local list = require('touchmark.list')
local names = require('touchmark.names')
local notice = require('touchmark.notice')
local queue = require('touchmark.queue')
local view = require('touchmark.view')
local whole = require('touchmark.whole')
local words = require('touchmark.words')
local workspace = require('touchmark.workspace')

local M = {}

local plural, what, path_of = words.plural, words.what, queue.path_of
--- Files that a question names.
local FILES = 6

--- The link of the current buffer, of the view, or of the working directory.
local function here(callback)
  local state = buffers.get(0)
  local found = state and state.link or (vim.api.nvim_get_current_buf() == view.find(list.NAME) and list.owner())
  local function answer(owner)
    if owner and owner:is_connected() then
      return callback(owner)
    end
    notice.say('No daemon runs for this workspace. Agents start it; so does `touchmark start`.')
  end
  if found then
    return answer(found)
  end
  link.first(workspace.candidates(vim.fn.getcwd()), answer)
end

--- Whether a buffer's lines are those of a change: it may not have loaded what
--- the daemon has seen.
local function is_shown(buffer, lines, hunk)
  if hunk.after == '' then
    return true
  end
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, lines[1] - 1, lines[2], false), '\n')
  return text == (hunk.after:gsub('\r?\n$', ''):gsub('\r\n', '\n'))
end

--- Calls back with the changes at the cursor: in the view those of the change or
--- the group that is shown, in a file the one that the daemon has there now.
local function at_cursor(callback)
  local buffer, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  if buffer == view.find(list.NAME) then
    local row = list.entry(cursor)
    if row then
      return callback(row.owner, row.changes)
    end
    return notice.say('There is no change in this line.')
  end
  here(function(owner)
    queue.look(owner, function(hunks)
      local state = buffers.get(buffer)
      if not hunks or not state then
        return hunks and notice.say('This buffer shows no file.')
      end
      for _, hunk in ipairs(hunks) do
        local lines = path_of(owner, hunk) == buffers.path(state) and queue.place(buffer, state, hunk)
        if lines and cursor >= lines[1] and cursor <= lines[2] then
          if is_shown(buffer, lines, hunk) then
            return callback(owner, { hunk })
          end
          return notice.say(('conflict in %s: the file on disk differs from this buffer. `:edit` loads it'):format(hunk.path))
        end
      end
      local none = "There is no agent's change to review in this line."
      for _, file in ipairs(queue.of(owner).files) do
        if path_of(owner, file) == buffers.path(state) then
          none = ('%s One of the whole file waits (%s): see `:Touchmark review`.'):format(none, whole.what(file))
        end
      end
      notice.say(none)
    end)
  end)
end

--- Says what an undo has left as it is. Returns whether there was anything.
local function left(undone)
  local stays = {}
  for _, file in ipairs(undone.files) do
    for _, conflict in ipairs(file.conflicts or {}) do
      stays[#stays + 1] = ('%s line %d (changed since by %s)'):format(file.path, conflict.lines.start, names.author(conflict.by))
    end
    for _, one in ipairs(file.left or {}) do
      stays[#stays + 1] = ('%s: %s'):format(file.path, one.why)
    end
    if not file.conflicts and not file.left and vim.tbl_contains({ 'conflict', 'notKept', 'changed', 'failed' }, file.outcome) then
      stays[#stays + 1] = ('%s: %s'):format(file.path, file.cause or file.outcome)
    end
  end
  if #stays > 0 then
    notice.say(('conflict: %s stays: %s'):format(plural(#stays, 'change'), table.concat(stays, '; ')))
  end
  return #stays > 0
end

--- What changes are, in a few words.
local function told(changes)
  if #changes == 1 then
    return ('%s, %s'):format(names.tail(changes[1].path, 30), what(changes[1]))
  end
  return ('%s in %s'):format(plural(#changes, 'change'), plural(groups.files(changes), 'file'))
end

--- Answers to `review/keep` and `review/undo`.
local function answered(owner, changes, done)
  return function(error, result)
    if error then
      local code = error.data and error.data.code
      local path = code == 'notFound' and error.data.path or changes[1].path
      local why = code == 'notFound' and 'the change is no longer as it was listed' or error.message
      notice.say(('conflict in %s: %s. Nothing was %s'):format(path, why, done))
    elseif not (result.files and left(result)) then
      local back = result.files and ' (back: `:Touchmark redo`)' or ''
      notice.say(('%s: %s%s'):format(done, told(changes), back))
    end
    queue.look(owner)
  end
end

--- Asks before several changes are kept or undone together.
local function is_meant(verb, changes)
  if #changes == 1 then
    return true
  end
  local paths = {}
  for _, change in ipairs(changes) do
    if not vim.tbl_contains(paths, change.path) then
      paths[#paths + 1] = change.path
    end
  end
  local some = vim.tbl_map(function(path)
    return '  ' .. names.tail(path, 70)
  end, vim.list_slice(paths, 1, FILES))
  if #paths > FILES then
    some[#some + 1] = ('  and %d more'):format(#paths - FILES)
  end
  local question = ('%s %s?\n%s'):format(verb, told(changes), table.concat(some, '\n'))
  return vim.fn.confirm(question, ('&%s\n&Cancel'):format(verb), 2) == 1
end

local function all_named(owner, changes)
  return vim.tbl_map(function(change)
    return queue.named(owner, change)
  end, changes)
end

local function keep(owner, changes)
  if #changes > 0 and is_meant('Keep', changes) then
    owner:request('review/keep', { hunks = all_named(owner, changes) }, answered(owner, changes, 'kept'))
  end
end

--- The part of the history or of the queue that a word of the user's selects: a
--- command (`c5`), a file or a directory, or else a session.
local function selection(owner, word)
  if word:match('^c%d+$') then
    return { command = word }
  end
  local path = vim.fn.fnamemodify(vim.fn.expand(word), ':p')
  local inside = vim.fn.getftype(path) ~= '' and workspace.relative(owner.root, (path:gsub('(.)/$', '%1')))
  return inside and { paths = { inside } } or { session = word }
end

--- Calls back with the changes of the queue that a word of the user's selects.
local function selected(owner, word, callback)
  owner:request('review/list', selection(owner, word), function(error, result)
    if error then
      return notice.say(error.message)
    end
    local changes = vim.list_extend(result.hunks, result.files or {})
    if #changes == 0 then
      return notice.say(word .. ' has no change that waits for your review.')
    end
    callback(owner, changes)
  end)
end

--- Keeps the changes at the cursor, or those of a session, a command or a
--- directory: they stay, and leave the queue.
---@param word string?
function M.keep(word)
  if not word then
    return at_cursor(keep)
  end
  here(function(owner)
    selected(owner, word, keep)
  end)
end

--- Undoes what a session or a command did, after questions.
local function undo_all(owner, word, ask)
  local function plan(callback)
    owner:request('undo', vim.tbl_extend('error', { dryRun = true, now = true }, ask), function(error, planned)
      if error then
        return notice.say(error.message)
      end
      callback(planned)
    end)
  end
  local function undo(planned)
    local changes = 0
    for _, file in ipairs(planned.files) do
      changes = changes + file.hunks
    end
    if changes == 0 then
      return left(planned) or notice.say(word .. ' has no change that can be undone.')
    end
    local question = ('Undo %s by %s? Lines that others have written stay.'):format(plural(changes, 'change'), word)
    if vim.fn.confirm(question, '&Undo\n&Cancel', 2) ~= 1 then
      return
    end
    owner:request('undo', vim.tbl_extend('error', { now = true }, ask), function(failed, undone)
      if failed then
        notice.say(failed.message)
      elseif not left(undone) then
        notice.say(('undone: %s by %s (back: `:Touchmark redo`)'):format(plural(changes, 'change'), word))
      end
      queue.look(owner)
    end)
  end
  plan(function(planned)
    local doubts, known = likely.planned(planned), {}
    if #doubts == 0 then
      return undo(planned)
    end
    for _, row in ipairs(planned.commands or {}) do
      known[row.command] = row
    end
    likely.ask(owner, doubts, known, function()
      plan(undo)
    end)
  end)
end

--- Undoes changes, after a question about those that may be the user's.
local function undo(owner, changes)
  for _, hunk in ipairs(changes) do
    local is_written = hunk.lines or not whole.is_mode(hunk)
    for buffer in pairs(is_written and buffers.of(owner, path_of(owner, hunk)) or {}) do
      if vim.bo[buffer].modified then
        return notice.say(('%s has unsaved changes: `:write` it first, an undo changes the file on disk'):format(names.tail(hunk.path, 30)))
      end
    end
  end
  if not is_meant('Undo', changes) then
    return
  end
  local known = queue.of(owner) or { hunks = changes, files = {}, commands = {} }
  likely.ask(owner, likely.of(changes, queue.all(known)), known.commands, function(theirs)
    local is_theirs = {}
    for _, doubt in ipairs(theirs) do
      is_theirs[doubt.command or ''] = true
    end
    local meant = vim.tbl_filter(function(change)
      return not likely.may_be_yours(change) or is_theirs[change.command or '']
    end, changes)
    if #meant == 0 then
      return queue.look(owner)
    end
    owner:request('review/undo', { hunks = all_named(owner, meant) }, answered(owner, meant, 'undone'))
  end)
end

--- Undoes the changes at the cursor, or all that a session or a command did, or
--- that agents did below a directory.
---@param word string?
function M.undo(word)
  if not word then
    return at_cursor(undo)
  end
  here(function(owner)
    local ask = selection(owner, word)
    if ask.paths then
      return selected(owner, word, undo)
    end
    undo_all(owner, word, ask)
  end)
end

--- Reverts the newest undo.
function M.redo()
  here(function(owner)
    owner:request('redo', {}, function(error, redone)
      if error then
        return notice.say(error.message)
      end
      if not left(redone) then
        notice.say('the last undo was taken back')
      end
      queue.look(owner)
    end)
  end)
end

--- Puts the changes at the cursor off: they stay in the queue.
function M.later()
  at_cursor(function(owner, changes)
    queue.put_off(owner, changes)
    M.go(1)
  end)
end

--- Opens a file at a change.
local function open(owner, hunk)
  if not buffers.of(owner, path_of(owner, hunk))[vim.api.nvim_get_current_buf()] then
    local name = (owner.root == '/' and '' or owner.root) .. '/' .. path_of(owner, hunk)
    local ok, why = pcall(vim.cmd, 'edit ' .. vim.fn.fnameescape(vim.fn.fnamemodify(name, ':.')))
    if not ok then
      return notice.say(tostring(why))
    end
  end
  if not hunk.lines then
    return
  end
  local buffer = vim.api.nvim_get_current_buf()
  local state = buffers.get(buffer)
  local lines = state and queue.place(buffer, state, hunk) or { math.max(1, hunk.lines.start) }
  vim.api.nvim_win_set_cursor(0, { math.min(lines[1], vim.api.nvim_buf_line_count(buffer)), 0 })
  queue.sign(owner)
end

--- Goes to the next change, or with -1 to the one before: in the view, in the
--- file, then in other files. After the last comes the first. Deleted files,
--- modes and symlinks are in the view alone.
---@param by 1|-1
function M.go(by)
  local buffer, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  if buffer == view.find(list.NAME) then
    local function is_later(entry)
      return #vim.tbl_filter(function(change)
        return not queue.is_later(entry.owner, change)
      end, entry.changes) == 0
    end
    local to
    for _, line in ipairs(list.stops()) do
      if list.entry(line) ~= list.entry(cursor) and not is_later(list.entry(line)) then
        if by == 1 and line > cursor then
          to = to or line
        elseif by == -1 and line < cursor then
          to = line
        end
      end
    end
    return to and vim.api.nvim_win_set_cursor(0, { to, 0 })
  end
  here(function(owner)
    queue.look(owner, function(hunks)
      if not hunks then
        return
      elseif #hunks == 0 then
        local has_files = #queue.not_later(owner, 'files') > 0
        return notice.say(
          has_files and 'Only modes and symlinks wait for your review: see `:Touchmark review`.' or "No agent's change waits for your review."
        )
      end
      hunks = vim.tbl_filter(function(hunk)
        return not hunk.deleted
      end, hunks)
      if #hunks == 0 then
        return notice.say('Only deleted files wait for your review: see `:Touchmark review`.')
      end
      local state = buffers.get(buffer)
      local path = state and state.link == owner and buffers.path(state)
      local to, first, last
      for at, hunk in ipairs(hunks) do
        if path_of(owner, hunk) == path then
          first, last = first or at, at
          local lines = queue.place(buffer, state, hunk) or { hunk.lines.start }
          local line = math.max(1, lines[1])
          if by == 1 and line > cursor then
            to = to or at
          elseif by == -1 and line < cursor then
            to = at
          end
        end
      end
      to = to or (by == 1 and (last or 0) + 1 or (first or #hunks + 1) - 1)
      open(owner, hunks[(to - 1) % #hunks + 1])
    end)
  end)
end

--- Opens the view of the queue.
---@param word string? only changes of this session, command or directory
function M.open(word)
  here(function(owner)
    queue.begin(owner, word and selection(owner, word) or {})
    local function enter()
      local row = list.entry(vim.api.nvim_win_get_cursor(0)[1])
      if not row then
        return
      elseif row.group then
        return list.fold()
      elseif row.hunk.deleted then
        return notice.say(('%s was deleted'):format(names.tail(row.hunk.path, 40)))
      elseif not row.hunk.lines and not whole.is_file(row.hunk) then
        return notice.say(('%s: %s'):format(names.tail(row.hunk.path, 40), what(row.hunk)))
      end
      -- In the window that the view was opened from, where there is one.
      vim.cmd('wincmd p')
      if vim.api.nvim_get_current_buf() == view.find(list.NAME) then
        vim.cmd('aboveleft split')
      end
      open(row.owner, row.hunk)
    end
    view.open(list.NAME, function()
      queue.look(owner)
    end, {
      K = function()
        M.keep()
      end,
      S = list.fold,
      B = function()
        list.group()
      end,
      U = function()
        M.undo()
      end,
      L = M.later,
      ['<CR>'] = enter,
      [']c'] = function()
        M.go(1)
      end,
      ['[c'] = function()
        M.go(-1)
      end,
    })
  end)
end

return M

--- The queue of agents' changes that the user has not reviewed (REV-1): a view
--- of it, signs in the files, and what keeps and undoes a change.

local buffers = require('touchmark.buffers')
local config = require('touchmark.config')
local link = require('touchmark.link')
local names = require('touchmark.names')
local notice = require('touchmark.notice')
local unsaved = require('touchmark.unsaved')
local view = require('touchmark.view')
local whole = require('touchmark.whole')
local workspace = require('touchmark.workspace')

local M = {}

local namespace = vim.api.nvim_create_namespace('touchmark-review')
local NAME = 'review'
--- Events come in bursts: the queue is requested this long after the first, in
--- milliseconds.
local BURST = 250
--- Lines of each side of a change that the view shows.
local MOST = 20

--- By link, once the user has begun to review: {hunks, files, more, session,
--- due}. `files` are changes that have no lines.
local queues = {}
--- Changes that were put off, by name: they stay in the queue.
local later = {}
--- By line of the view: the change that is shown there, and its link.
local rows = {}

local function key(owner, hunk)
  return owner.root .. '\n' .. hunk.path .. '\n' .. hunk.id
end

local function named(owner, hunk)
  local path = names.path_of(owner.root, hunk)
  local member, name = names.member(owner.root, path)
  return { [member] = name, id = hunk.id }
end

local function path_of(owner, hunk)
  return names.path_of(owner.root, hunk)
end

local function count(text)
  local _, ends = text:gsub('\n', '')
  return ends + (text:sub(-1) ~= '\n' and text ~= '' and 1 or 0)
end

local function plural(number, word)
  return ('%d %s%s'):format(number, word, number == 1 and '' or 's')
end

--- What a change did: `line 4 changed`, `mode 644 → 755`.
local function what(hunk)
  if not hunk.lines then
    return whole.what(hunk)
  end
  local from, to = hunk.lines.start, hunk.lines['end']
  if hunk.deleted then
    return 'deleted the file'
  elseif hunk.created then
    return 'new file, ' .. plural(count(hunk.after), 'line')
  elseif hunk.after == '' then
    return ('%s removed after line %d'):format(plural(count(hunk.before), 'line'), from)
  end
  local lines = from == to and ('line %d'):format(from) or ('lines %d-%d'):format(from, to)
  return lines .. (hunk.before == '' and ' added' or ' changed')
end

local function authors(hunk)
  local found = {}
  for _, author in ipairs(hunk.authors) do
    local name = names.author(author)
    if not vim.tbl_contains(found, name) then
      found[#found + 1] = name
    end
  end
  -- It appeared while a command ran, and may be the user's.
  return table.concat(found, ', ') .. (hunk.likely and ' or you' or '')
end

--- The changes of `kind` in a link's queue that were not put off.
local function not_later(owner, kind)
  return vim.tbl_filter(function(hunk)
    return not later[key(owner, hunk)]
  end, queues[owner] and queues[owner][kind] or {})
end

local function open_hunks(owner)
  return not_later(owner, 'hunks')
end

--- The lines of a change in a buffer, from 1, or nil where unsaved changes
--- touch them.
local function place(buffer, state, hunk)
  local first, last = math.max(1, hunk.lines.start), math.max(1, hunk.lines['end'])
  if vim.bo[buffer].modified then
    local total = vim.api.nvim_buf_line_count(buffer)
    first = unsaved.shown(state.edit, total, first)
    last = unsaved.shown(state.edit, total, last)
  end
  return first and last and { first, last }
end

--- Signs on the lines of changes to review.
local function sign(owner)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local state = buffers.get(buffer)
    if state and state.link == owner and vim.api.nvim_buf_is_loaded(buffer) then
      vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
      local total = vim.api.nvim_buf_line_count(buffer)
      for _, hunk in ipairs(config.options.signs.enabled and open_hunks(owner) or {}) do
        local lines = path_of(owner, hunk) == buffers.path(state) and place(buffer, state, hunk)
        for line = lines and lines[1] or 1, lines and math.min(lines[2], total) or 0 do
          vim.api.nvim_buf_set_extmark(buffer, namespace, line - 1, 0, {
            sign_text = hunk.after == '' and config.options.signs.removed or config.options.signs.review,
            sign_hl_group = 'TouchmarkReview',
            priority = config.options.signs.priority + 1,
          })
        end
      end
    end
  end
end

--- The lines of the view, and which change each belongs to.
local function render(owner, queue)
  local lines, own = {}, {}
  local function add(line, hunk)
    lines[#lines + 1] = line
    own[#lines] = hunk
  end
  local changes = vim.list_extend(vim.list_extend({}, queue.hunks), queue.files)
  local number = #changes
  local width = math.max(40, vim.o.columns - 1)
  if number == 0 then
    add("No agent's change waits for your review.")
  else
    add(('%s%s by agents to review'):format(plural(number, 'change'), queue.more and ' and more' or ''))
    add('K keep  U undo  L later  <CR> open  ]c next  [c previous  R again  q close')
  end
  for _, hunk in ipairs(changes) do
    add('')
    local by = authors(hunk) .. ', ' .. (later[key(owner, hunk)] and 'later' or names.ago(hunk.time))
    local did = what(hunk)
    local room = width - vim.fn.strdisplaywidth(did .. by) - 4
    add(('%s: %s  %s'):format(names.tail(path_of(owner, hunk), math.max(12, room)), did, by), hunk)
    for _, side in ipairs(hunk.lines and { { '-', hunk.before }, { '+', hunk.after } } or {}) do
      local all = side[2] == '' and {} or vim.split((side[2]:gsub('\n$', '')), '\n', { plain = true })
      for at, line in ipairs(all) do
        if at > MOST then
          add(('  and %s more'):format(plural(#all - MOST, 'line')), hunk)
          break
        end
        add(side[1] .. names.show(line, 1000), hunk)
      end
    end
  end
  return lines, own
end

local function colour(buffer, lines)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local groups = { ['-'] = 'DiffDelete', ['+'] = 'DiffAdd' }
  for at, line in ipairs(lines) do
    local group = rows[at] and (groups[line:sub(1, 1)] or (line:find('^  and') and 'Comment') or 'Title')
    if group or at == 2 then
      vim.api.nvim_buf_set_extmark(buffer, namespace, at - 1, 0, { end_col = #line, hl_group = group or 'Comment' })
    end
  end
end

--- The line of the view at which a change begins, counted from the first.
local function line_of(number)
  local seen, before = 0, nil
  for line = 1, vim.tbl_count(rows) > 0 and math.max(unpack(vim.tbl_keys(rows))) or 0 do
    local row = rows[line]
    if row and row.hunk ~= before then
      seen = seen + 1
      if seen == number then
        return line
      end
    end
    before = row and row.hunk
  end
end

--- Shows the queue in the view, if that is open. The cursor stays at the change
--- of the same number.
local function draw(owner)
  local buffer = view.find(NAME)
  local queue = queues[owner]
  if not buffer or not queue then
    return
  end
  local window = vim.fn.bufwinid(buffer)
  local number, before = 0, nil
  local cursor = window ~= -1 and vim.api.nvim_win_get_cursor(window)[1] or 0
  for line = 1, cursor do
    if rows[line] and rows[line].hunk ~= before then
      number = number + 1
    end
    before = rows[line] and rows[line].hunk
  end
  local top = window ~= -1 and vim.fn.getwininfo(window)[1].topline
  local lines, own = render(owner, queue)
  rows = {}
  for line, hunk in pairs(own) do
    rows[line] = { owner = owner, hunk = hunk }
  end
  view.show(buffer, lines)
  colour(buffer, lines)
  local at = line_of(math.max(1, math.min(number, #queue.hunks + #queue.files)))
  if window ~= -1 and at then
    vim.api.nvim_win_call(window, function()
      vim.fn.winrestview({ lnum = at, col = 0, topline = top })
    end)
  end
end

--- Requests the queue. Calls back with its changes of lines, or with nil after
--- it has said why there are none.
local function look(owner, callback)
  local queue = queues[owner] or { hunks = {}, files = {} }
  queues[owner] = queue
  owner:request('review/list', { session = queue.session }, function(error, result)
    if error then
      notice.say(error.message)
      return callback and callback(nil)
    end
    queue.hunks, queue.files, queue.more = result.hunks, result.files or {}, result.more
    sign(owner)
    draw(owner)
    if callback then
      callback(open_hunks(owner))
    end
  end)
end

--- A file has a new version: the queue is requested soon, if the user reviews.
function M.changed(owner)
  local queue = queues[owner]
  if queue and not queue.due then
    queue.due = true
    vim.defer_fn(function()
      queue.due = false
      if owner:is_connected() then
        look(owner)
      end
    end, BURST)
  end
end

--- The link of the current buffer, of the view, or of the working directory.
local function here(callback)
  local state = buffers.get(0)
  local _, row = next(rows)
  local found = state and state.link or (vim.api.nvim_get_current_buf() == view.find(NAME) and row and row.owner)
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

--- Calls back with the change at the cursor: in the view the one that is shown,
--- in a file the one that the daemon has there now.
local function at_cursor(callback)
  local buffer, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  if buffer == view.find(NAME) then
    local row = rows[cursor]
    return row and callback(row.owner, row.hunk) or notice.say('There is no change in this line.')
  end
  here(function(owner)
    look(owner, function(hunks)
      local state = buffers.get(buffer)
      if not hunks or not state then
        return hunks and notice.say('This buffer shows no file.')
      end
      for _, hunk in ipairs(hunks) do
        local lines = path_of(owner, hunk) == buffers.path(state) and place(buffer, state, hunk)
        if lines and cursor >= lines[1] and cursor <= lines[2] then
          if is_shown(buffer, lines, hunk) then
            return callback(owner, hunk)
          end
          return notice.say(('conflict in %s: the file on disk differs from this buffer. `:edit` loads it'):format(hunk.path))
        end
      end
      local none = "There is no agent's change to review in this line."
      for _, file in ipairs(queues[owner].files) do
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

--- Answers to `review/keep` and `review/undo`.
local function answered(owner, hunk, done)
  return function(error, result)
    if error then
      local code = error.data and error.data.code
      local why = code == 'notFound' and 'the change is no longer as it was listed' or error.message
      notice.say(('conflict in %s: %s. Nothing was %s'):format(hunk.path, why, done))
    elseif not (result.files and left(result)) then
      local back = result.files and ' (back: `:Touchmark redo`)' or ''
      notice.say(('%s: %s, %s%s'):format(done, names.tail(hunk.path, 30), what(hunk), back))
    end
    look(owner)
  end
end

--- Keeps the change at the cursor: it stays, and leaves the queue.
function M.keep()
  at_cursor(function(owner, hunk)
    owner:request('review/keep', { hunks = { named(owner, hunk) } }, answered(owner, hunk, 'kept'))
  end)
end

--- Undoes what a session did, after a question.
local function undo_session(session)
  here(function(owner)
    owner:request('undo', { session = session, dryRun = true, now = true }, function(error, planned)
      if error then
        return notice.say(error.message)
      end
      local changes = 0
      for _, file in ipairs(planned.files) do
        changes = changes + file.hunks
      end
      if changes == 0 then
        return left(planned) or notice.say(session .. ' has no change that can be undone.')
      end
      local question = ('Undo %s by %s? Lines that others have written stay.'):format(plural(changes, 'change'), session)
      if vim.fn.confirm(question, '&Undo\n&Cancel', 2) ~= 1 then
        return
      end
      owner:request('undo', { session = session, now = true }, function(failed, undone)
        if failed then
          notice.say(failed.message)
        elseif not left(undone) then
          notice.say(('undone: %s by %s (back: `:Touchmark redo`)'):format(plural(changes, 'change'), session))
        end
        look(owner)
      end)
    end)
  end)
end

--- Undoes the change at the cursor, or all that a session did.
---@param session string?
function M.undo(session)
  if session then
    return undo_session(session)
  end
  at_cursor(function(owner, hunk)
    local is_written = hunk.lines or not whole.is_mode(hunk)
    for buffer in pairs(is_written and buffers.of(owner, path_of(owner, hunk)) or {}) do
      if vim.bo[buffer].modified then
        return notice.say(('%s has unsaved changes: `:write` it first, an undo changes the file on disk'):format(names.tail(hunk.path, 30)))
      end
    end
    owner:request('review/undo', { hunks = { named(owner, hunk) } }, answered(owner, hunk, 'undone'))
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
      look(owner)
    end)
  end)
end

--- Puts the change at the cursor off: it stays in the queue.
function M.later()
  at_cursor(function(owner, hunk)
    later[key(owner, hunk)] = true
    sign(owner)
    draw(owner)
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
  local lines = state and place(buffer, state, hunk) or { math.max(1, hunk.lines.start) }
  vim.api.nvim_win_set_cursor(0, { math.min(lines[1], vim.api.nvim_buf_line_count(buffer)), 0 })
  sign(owner)
end

--- Goes to the next change, or with -1 to the one before: in the view, in the
--- file, then in other files. After the last comes the first. Deleted files,
--- modes and symlinks are in the view alone.
---@param by 1|-1
function M.go(by)
  local buffer, cursor = vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_cursor(0)[1]
  if buffer == view.find(NAME) then
    local last = vim.api.nvim_buf_line_count(buffer)
    local from = rows[cursor] and rows[cursor].hunk
    local line = cursor + by
    while line >= 1 and line <= last do
      local row = rows[line]
      local first = row and not (rows[line - 1] and rows[line - 1].hunk == row.hunk)
      if first and row.hunk ~= from and not later[key(row.owner, row.hunk)] then
        return vim.api.nvim_win_set_cursor(0, { line, 0 })
      end
      line = line + by
    end
    return
  end
  here(function(owner)
    look(owner, function(hunks)
      if not hunks then
        return
      elseif #hunks == 0 then
        local has_files = #not_later(owner, 'files') > 0
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
          local lines = place(buffer, state, hunk) or { hunk.lines.start }
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
---@param session string? only changes by this session
function M.open(session)
  here(function(owner)
    later = {}
    queues[owner] = { hunks = {}, files = {}, session = session }
    local function enter()
      local row = rows[vim.api.nvim_win_get_cursor(0)[1]]
      if not row then
        return
      elseif row.hunk.deleted then
        return notice.say(('%s was deleted'):format(names.tail(row.hunk.path, 40)))
      elseif not row.hunk.lines and not whole.is_file(row.hunk) then
        return notice.say(('%s: %s'):format(names.tail(row.hunk.path, 40), whole.what(row.hunk)))
      end
      -- In the window that the view was opened from, where there is one.
      vim.cmd('wincmd p')
      if vim.api.nvim_get_current_buf() == view.find(NAME) then
        vim.cmd('aboveleft split')
      end
      open(row.owner, row.hunk)
    end
    view.open(NAME, function()
      look(owner)
    end, {
      K = M.keep,
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

--- The lines with a sign of a change to review, in order.
---@return integer[]
function M.placed(buffer)
  return vim.tbl_map(function(mark)
    return mark[2] + 1
  end, vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, {}))
end

return M

--- What the user does to files, told to the daemon: opened, changed and not
--- saved, saved, closed.

local content = require('touchmark.content')
local files = require('touchmark.files')
local link = require('touchmark.link')
local names = require('touchmark.names')
local signs = require('touchmark.signs')
local unsaved = require('touchmark.unsaved')
local workspace = require('touchmark.workspace')
local uv = vim.uv or vim.loop

local M = {}

--- Larger files are hashed when they are saved, not when they are loaded: it
--- takes seconds of the editor's processor.
local LARGEST = 16 * 1024 * 1024

--- By buffer number: {name, link, told (told of by this connection), dirty,
--- base = {hash, stat} of what was loaded or saved last, writing, text, changes,
--- clean (it had no unsaved changes when last looked at), edit = which lines
--- have some, lines = those that were told}.
local buffers = {}

--- A buffer's state, if it shows a file.
function M.get(buffer)
  return buffers[buffer == 0 and vim.api.nvim_get_current_buf() or buffer]
end

--- The buffers that show a file.
---@return table<integer, table>
function M.of(owner, path)
  local found = {}
  for buffer, state in pairs(buffers) do
    if state.link == owner and M.path(state) == path then
      found[buffer] = state
    end
  end
  return found
end

--- The path of a buffer's file in its workspace, or nil.
function M.path(state)
  if state.link and state.path_root ~= state.link.root then
    state.path_root = state.link.root
    state.path = workspace.relative(state.link.root, state.name)
  end
  return state.path
end

--- Says something about a file, if anybody listens.
local function tell(state, method, more)
  local path = M.path(state)
  if not path or not state.link:is_connected() then
    return false
  end
  local member, name = names.member(state.link.root, path)
  local params = vim.tbl_extend('error', { [member] = name }, more or {})
  state.link:request(method, params)
  return true
end

--- Tells whether there are unsaved changes, and in which lines, when that is
--- another answer than the last.
local function tell_dirty(buffer)
  local state = buffers[buffer]
  if not state or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  local dirty = vim.bo[buffer].modified
  state.clean, state.edit = not dirty, dirty and state.edit or nil
  local lines = unsaved.lines(state.edit)
  local same = dirty == (state.dirty or false) and vim.deep_equal(lines, state.lines)
  if not same and tell(state, 'editor/dirty', { dirty = dirty, lines = lines }) then
    state.dirty, state.lines = dirty, lines
  end
end
M.tell_dirty = tell_dirty

--- Tells all about a buffer to a connection that knows nothing.
local function introduce(buffer, state)
  state.dirty, state.lines, state.told = false, nil, false
  local path = M.path(state)
  if not path then
    return
  end
  state.told = tell(state, 'editor/didOpen')
  tell_dirty(buffer)
  files.of(state.link, path)
  files.ask(state.link, path, function(file)
    M.known(buffer, state, file)
  end)
end

--- Something new is known of a buffer's file.
function M.known(buffer, state, file)
  if buffers[buffer] == state and vim.api.nvim_buf_is_loaded(buffer) then
    signs.refresh(buffer, state, file.authors)
    vim.cmd('redrawstatus!')
  end
end

--- Shows whose the lines are that were loaded.
local function resolve(buffer, state)
  local path = M.path(state)
  local file = path and files.known(state.link, path)
  if not file then
    return
  end
  if state.base and not file.authors[state.base.hash] and #(state.changes or {}) > 0 then
    return files.ask(state.link, path, function(now)
      M.known(buffer, state, now)
    end)
  end
  M.known(buffer, state, file)
end

--- Looks at what was loaded: its hash, and which lines are new.
local function look(buffer, state)
  state.base = nil
  signs.loaded(buffer, state)
  local ticket = {}
  state.looking = ticket
  local stat = uv.fs_stat(state.name)
  if not stat or stat.size > LARGEST then
    return
  end
  content.hash(state.name, nil, function(error, found)
    if error or state.looking ~= ticket or buffers[buffer] ~= state then
      return
    end
    state.base = found
    signs.named(state, found.hash)
    resolve(buffer, state)
  end)
end

--- Finds the daemon of a buffer's file, and introduces it.
local function find(buffer, state)
  local directory = workspace.directory_of(state.name)
  if state.link or state.finding or not directory then
    return
  end
  state.finding = true
  link.first(workspace.candidates(directory), function(found)
    state.finding = false
    if buffers[buffer] ~= state or not found then
      return
    end
    state.link = found
    if found:is_connected() then
      introduce(buffer, state)
    end
  end)
end

local function close(buffer)
  local state = buffers[buffer]
  if not state then
    return
  end
  buffers[buffer] = nil
  local path = M.path(state)
  if path and next(M.of(state.link, path)) == nil then
    if state.told then
      tell(state, 'editor/didClose')
    end
    files.drop(state.link, path)
  end
end

--- Changes are noticed where they are made, in any buffer and by whomever;
--- whether they leave it changed is looked at afterwards, once.
local function attach(buffer, state)
  local due = false
  local function changed()
    if buffers[buffer] ~= state then
      return true -- detaches
    end
    if state.writing then
      state.writing.changed = true
    end
    if not due then
      due = true
      vim.schedule(function()
        due = false
        tell_dirty(buffer)
      end)
    end
  end
  vim.api.nvim_buf_attach(buffer, false, {
    on_lines = function(_, _, _, first, last, new_last)
      -- Of changes from before this nothing is known.
      if state.edit or state.clean then
        local count = vim.api.nvim_buf_line_count(buffer)
        state.edit = unsaved.changed(state.edit, count, first, last, new_last)
      end
      return changed()
    end,
    on_reload = function()
      state.edit = nil
      return changed()
    end,
    on_detach = function()
      state.attached = false
    end,
  })
  state.attached, state.clean = true, not vim.bo[buffer].modified
end

--- A buffer shows a file: from now on, or again.
function M.opened(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  -- Not a file: a terminal, help, a plug-in's `scheme://`.
  if vim.bo[buffer].buftype ~= '' or name == '' or name:sub(1, 1) ~= '/' then
    return close(buffer)
  end
  local state = buffers[buffer]
  if state and state.name ~= name then
    close(buffer)
    state = nil
  end
  if not state then
    state = { name = name }
    buffers[buffer] = state
  end
  if not state.attached then
    attach(buffer, state)
  end
  look(buffer, state)
  find(buffer, state)
end

--- The user is here again: what had no daemon may have one now.
function M.entered(buffer)
  if buffers[buffer] then
    find(buffer, buffers[buffer])
  end
end

--- Before a write. What changes between this and the write's end was changed
--- by a formatter.
function M.before_write(buffer, target)
  local state = buffers[buffer]
  if state then
    state.writing = {
      stat = uv.fs_stat(target),
      modified = vim.bo[buffer].modified,
      changed = false,
    }
  end
end

--- After a write to `target`, which need not be the buffer's own file. The
--- bytes are read back: line ends, encoding, BOM and last line are as they are.
function M.after_write(buffer, target)
  local state = buffers[buffer]
  if not state then
    if target == vim.api.nvim_buf_get_name(buffer) then
      M.opened(buffer)
      state = buffers[buffer]
    end
    if not state then
      return
    end
  end
  local writing = state.writing or {}
  state.writing = nil
  tell_dirty(buffer)
  find(buffer, state)
  local seconds, micros = uv.gettimeofday()
  local time = seconds * 1000 + math.floor(micros / 1000)
  local own = target == state.name
  local base = state.base
  if own then
    signs.saved(buffer, state)
    state.base, state.looking = nil, nil
  end
  local stat = uv.fs_stat(target)
  if not stat then
    return
  end
  content.hash(target, stat, function(error, found)
    -- Somebody wrote since: these bytes are theirs.
    if error then
      return
    end
    if own then
      state.base = found
      -- The bytes that were there already: an agent's, perhaps, loaded and
      -- saved again. Nobody edited.
      if base and base.hash == found.hash and content.same(base.stat, writing.stat) then
        return
      end
    end
    local spoken = own and state or { name = target, link = state.link }
    tell(spoken, 'editor/didSave', {
      hash = found.hash,
      time = time,
      -- A formatter's work alone: with the user's own changes in it, it is
      -- the user's (ATTR-17 would give it to an agent that wrote just before).
      formatted = own and writing.changed == true and not writing.modified,
    })
  end)
end

--- A buffer is unloaded: for good, or to be loaded again at once (`:edit`).
function M.unloaded(buffer)
  vim.schedule(function()
    if not vim.api.nvim_buf_is_loaded(buffer) then
      close(buffer)
    end
  end)
end

--- A daemon answers: it is told all.
function M.connected(owner)
  for buffer, state in pairs(buffers) do
    if state.link == owner then
      introduce(buffer, state)
    end
  end
end

--- A daemon is gone, and with it what it was told.
function M.lost(owner)
  files.forget(owner)
  for _, state in pairs(buffers) do
    if state.link == owner then
      state.dirty, state.lines, state.told = false, nil, false
    end
  end
  vim.cmd('redrawstatus!')
end

return M

--- Files that were changed on disk while they are open: loaded again where
--- nothing can be lost, said where something could, never asked about twice.

local buffers = require('touchmark.buffers')
local config = require('touchmark.config')
local names = require('touchmark.names')
local notice = require('touchmark.notice')

local M = {}

--- Work that has to wait until the editor is not in the middle of something.
local waiting = {}

local function is_safe()
  local mode = vim.api.nvim_get_mode()
  return not mode.blocking and not mode.mode:find('^[cr]') and vim.fn.getcmdwintype() == ''
end

--- Does what had to wait.
function M.flush()
  if #waiting == 0 or not is_safe() then
    return
  end
  local due = waiting
  waiting = {}
  for _, work in ipairs(due) do
    work()
  end
end

local function when_safe(work)
  waiting[#waiting + 1] = work
  M.flush()
end

local function loads_again(buffer)
  -- Newer Neovims answer nil where the buffer follows the global option.
  local own = vim.bo[buffer].autoread
  if own == nil then
    own = vim.o.autoread
  end
  return config.options.reload and own
end

--- Loads a buffer's file again. Returns whether the buffer has changed.
local function load_again(buffer)
  local function tick()
    return vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_changedtick(buffer)
  end
  local before = tick()
  -- Fails where the text is locked; then the editor itself looks later.
  pcall(vim.cmd, 'silent! checktime ' .. buffer)
  if tick() == before then
    -- The editor compares times only, and the system gives the same time to
    -- files that are written within a few milliseconds.
    pcall(vim.api.nvim_buf_call, buffer, function()
      local view = vim.fn.winsaveview()
      vim.cmd('silent! keepalt keepjumps edit')
      vim.fn.winrestview(view)
    end)
  end
  return tick() and tick() ~= before
end

--- What an agent did, in a word.
local VERBS = { created = 'created', deleted = 'deleted', renamed = 'renamed' }

local function take(buffer, state, version)
  if buffers.get(buffer) ~= state or not vim.api.nvim_buf_is_loaded(buffer) then
    return
  end
  -- What is here already: loaded before the daemon told of it, or saved here.
  if state.base and state.base.hash == version.hash then
    return
  end
  local agent = version.author.kind == 'agent'
  local becomes = ''
  if vim.bo[buffer].modified then
    -- The editor would ask now. It is said instead, and the editor still asks
    -- before it writes over the newer bytes.
    becomes = version.hash and ': your unsaved changes here do not have it' or ': your unsaved changes are kept'
    state.told_of = agent or nil
  elseif not version.hash then
    becomes = ', it is still shown here'
  elseif loads_again(buffer) then
    if load_again(buffer) then
      becomes = ', loaded again'
    end
  else
    becomes = ', `:edit` loads it'
    state.told_of = agent or nil
  end
  if agent then
    local verb = VERBS[version.kind] or 'changed'
    notice.changed(names.author(version.author), verb, M.path_of(state), becomes)
  end
end

--- A buffer's path, as far as it is in its workspace.
function M.path_of(state)
  return buffers.path(state) or state.name
end

--- A file that is open has a new version.
function M.version(owner, path, version)
  if version.amends then
    return
  end
  for buffer, state in pairs(buffers.of(owner, path)) do
    when_safe(function()
      take(buffer, state, version)
    end)
  end
end

--- The editor has noticed a change by itself and would ask what to do
--- (`FileChangedShell`). What an agent did has been said already.
function M.changed_shell(buffer)
  if vim.v.fcs_choice ~= '' then
    return -- The user's own configuration has chosen.
  end
  local state = buffers.get(buffer)
  local reason = vim.v.fcs_reason
  local said = state and state.told_of and config.options.notify ~= false
  if said and (reason == 'conflict' or reason == 'changed') then
    state.told_of = nil
    vim.v.fcs_choice = ''
  else
    vim.v.fcs_choice = 'ask'
  end
end

return M

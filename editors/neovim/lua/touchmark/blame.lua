--- Who wrote the cursor's line, after its end.

local buffers = require('touchmark.buffers')
local names = require('touchmark.names')
local unsaved = require('touchmark.unsaved')

local M = {}

local namespace = vim.api.nvim_create_namespace('touchmark-blame')
--- How long the cursor stays in a line before its author is requested, in
--- milliseconds.
local STAY = 150

M.enabled = false

local ticket

local function clear(buffer)
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
end

--- The author of a line and when it was written, as text; nil of a line that is
--- older than what is on record, and in no commit.
local function text_of(line)
  if line.author.kind == 'unknown' then
    return nil
  end
  local who = names.writer(line)
  local commit = line.commit
  if line.author.kind == 'committed' and commit then
    local id = commit.id:sub(1, 8)
    -- Where a shallow clone ends, the author is not known.
    who = commit.author and ('%s (commit %s)'):format(names.show(commit.author, 40), id)
      or ('commit %s, or an earlier one'):format(id)
  elseif line.author.kind == 'user' and line.evidence ~= 'editor' then
    who = 'you or another program'
  end
  return ('%s, %s'):format(who, names.ago(line.time))
end

local function request(buffer, mine)
  local state = buffers.get(buffer)
  local path = state and buffers.path(state)
  if ticket ~= mine or not path or not state.link:is_connected() or vim.api.nvim_get_current_buf() ~= buffer then
    return
  end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local saved = line
  if vim.bo[buffer].modified then
    saved = unsaved.saved(state.edit, vim.api.nvim_buf_line_count(buffer), line)
  end
  if not saved then
    return
  end
  local member, name = names.member(state.link.root, path)
  local params = { [member] = name, range = { start = saved, ['end'] = saved } }
  state.link:request('file/blame', params, function(error, blame)
    if error or ticket ~= mine or not vim.api.nvim_buf_is_loaded(buffer) then
      return
    end
    local text = blame.lines[1] and text_of(blame.lines[1])
    if text and line <= vim.api.nvim_buf_line_count(buffer) then
      clear(buffer)
      vim.api.nvim_buf_set_extmark(buffer, namespace, line - 1, 0, {
        virt_text = { { '    ' .. names.show(text), 'TouchmarkBlame' } },
        hl_mode = 'combine',
      })
    end
  end)
end

--- The cursor has moved, or the file has changed.
function M.moved()
  if not M.enabled then
    return
  end
  local buffer, mine = vim.api.nvim_get_current_buf(), {}
  ticket = mine
  clear(buffer)
  vim.defer_fn(function()
    request(buffer, mine)
  end, STAY)
end

--- Begins to show authors, or ends it.
function M.toggle()
  M.enabled = not M.enabled
  if M.enabled then
    return M.moved()
  end
  ticket = nil
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    clear(buffer)
  end
end

--- What is shown after a buffer's lines.
---@return string[]
function M.shown(buffer)
  return vim.tbl_map(function(mark)
    return vim.trim(mark[4].virt_text[1][1])
  end, vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, { details = true }))
end

return M

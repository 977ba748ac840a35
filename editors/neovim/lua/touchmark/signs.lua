--- Signs on the lines that an agent changed since the user last saved.

local config = require('touchmark.config')
local hunks = require('touchmark.hunks')

local M = {}

local namespace = vim.api.nvim_create_namespace('touchmark')
--- More are not shown: so much is a new file.
local MOST = 5000

local function text_of(buffer)
  local count = vim.api.nvim_buf_line_count(buffer)
  if vim.api.nvim_buf_get_offset(buffer, count) > config.options.largest then
    return nil
  end
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n') .. '\n'
end

local function show(buffer, state, authors)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  if not config.options.signs.enabled then
    return
  end
  local last, shown = vim.api.nvim_buf_line_count(buffer), 0
  for _, change in ipairs(state.changes) do
    local author = change.hash and authors[change.hash]
    if author and author.kind == 'agent' then
      for line, kind in pairs(change.lines) do
        if line <= last and shown < MOST then
          shown = shown + 1
          vim.api.nvim_buf_set_extmark(buffer, namespace, line - 1, 0, {
            sign_text = config.options.signs[kind],
            sign_hl_group = 'TouchmarkAgent',
            priority = config.options.signs.priority,
          })
        end
      end
    end
  end
end

--- A buffer was loaded, the first time or again. `state` is the buffer's own.
function M.loaded(buffer, state)
  local before, now = state.text, text_of(buffer)
  state.text = now
  state.changes = state.changes or {}
  if not (before and now) then
    state.changes = {}
    return
  end
  local found = hunks.between(before, now)
  if #found == 0 then
    return
  end
  for _, change in ipairs(state.changes) do
    change.lines = hunks.carry(change.lines, found)
  end
  -- Whose it is, is known when the file's hash is.
  table.insert(state.changes, { lines = hunks.lines(found) })
end

--- What was loaded last has this hash.
function M.named(state, hash)
  local newest = state.changes and state.changes[#state.changes]
  if newest and not newest.hash then
    newest.hash = hash
  end
end

--- The user saved: what is there now is theirs.
function M.saved(buffer, state)
  state.text, state.changes = text_of(buffer), {}
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
end

--- Shows what is known by now. Lines that were edited since move by
--- themselves; they are only placed anew if what is shown changes.
---@param authors table<string, table> by hash
function M.refresh(buffer, state, authors)
  local shown = {}
  for _, change in ipairs(state.changes or {}) do
    local author = change.hash and authors[change.hash]
    if author and author.kind == 'agent' then
      shown[#shown + 1] = change.hash
    end
  end
  local key = table.concat(shown, ' ')
  if key ~= (state.shown or '') or (key ~= '' and not vim.bo[buffer].modified) then
    state.shown = key
    show(buffer, state, authors)
  end
end

--- The lines with a sign, in order: for tests and other plug-ins.
---@return integer[]
function M.placed(buffer)
  return vim.tbl_map(function(mark)
    return mark[2] + 1
  end, vim.api.nvim_buf_get_extmarks(buffer, namespace, 0, -1, {}))
end

return M

--- Text in a scratch buffer of its own, filled when it is there.

local M = {}

local function title_of(name)
  return 'touchmark://' .. name
end

--- The buffer of a view that is open, or nil.
---@param name string
---@return integer|nil
function M.find(name)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == title_of(name) then
      return buffer
    end
  end
end

--- Opens (or comes back to) a view. `fill(show)` is called now and for each
--- refresh; it calls `show(lines)` when it has them. `keys` are more mappings.
---@param name string
---@param fill fun(show: fun(lines: string[]))
---@param keys table<string, function>?
---@return integer buffer
function M.open(name, fill, keys)
  local buffer = M.find(name)
  local fresh = not buffer
  if fresh then
    buffer = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buffer, title_of(name))
    vim.bo[buffer].bufhidden = 'wipe'
    vim.bo[buffer].filetype = 'touchmark'
  end
  local window = vim.fn.bufwinid(buffer)
  if window ~= -1 then
    vim.api.nvim_set_current_win(window)
  else
    vim.cmd('botright split')
    vim.api.nvim_win_set_buf(0, buffer)
    vim.wo.wrap, vim.wo.number, vim.wo.relativenumber = false, false, false
    vim.wo.signcolumn = 'no'
  end
  local function refresh()
    fill(function(lines)
      M.show(buffer, lines)
    end)
  end
  if fresh then
    local all = vim.tbl_extend('error', { q = '<Cmd>bwipeout<CR>', R = refresh }, keys or {})
    for pressed, action in pairs(all) do
      vim.keymap.set('n', pressed, action, { buffer = buffer, nowait = true })
    end
  end
  refresh()
  return buffer
end

--- Puts lines into a view, if it is still there. A cursor in the last line
--- stays in the last line.
function M.show(buffer, lines)
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  local last = vim.api.nvim_buf_line_count(buffer)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    if vim.api.nvim_win_get_cursor(window)[1] == last then
      vim.api.nvim_win_set_cursor(window, { math.max(1, #lines), 0 })
    end
  end
end

return M
